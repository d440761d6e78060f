package admin

import (
	"context"
	"encoding/json"
	"time"
)

// Why a target is off.
const (
	OffGone  = "gone"  // it answered 410
	OffAsked = "asked" // a person switched it off
)

// TargetRow is a target as it is stored.
type TargetRow struct {
	Name     string          `json:"name"`
	Config   json.RawMessage `json:"config"` // the keys of a [[target]], without its name; secrets by reference only
	Source   string          `json:"source"` // file: the config file owns it; api
	Revision int64           `json:"revision"`
	Off      string          `json:"off,omitempty"`    // OffGone, OffAsked; "" = events go to it
	Reason   string          `json:"reason,omitempty"` // for people
	OffSince time.Time       `json:"off_since,omitzero"`
}

// TargetStore is what the handlers of targets ask of a database, on the terms of
// Store.
type TargetStore interface {
	// Targets are all of them, by name; Target is one.
	Targets(ctx context.Context) ([]TargetRow, error)
	Target(ctx context.Context, name string) (TargetRow, error)
	// PutTarget creates or replaces a row; revision 0 creates, any other must be the
	// stored one (fault.Conflict). One that answered 410 is asked again once its config
	// is another one.
	PutTarget(ctx context.Context, t TargetRow, revision int64) (TargetRow, error)
	// SwitchTarget sets off and reason. Setting what is set already writes nothing. What
	// a person switched off stays so, whatever it answers then.
	SwitchTarget(ctx context.Context, name, off, reason string) error
	// RemoveTarget deletes a row of that revision. Deliveries that wait for it are a
	// fault.Conflict, unless force: then they end as dead letters. It returns how many
	// did, also when a later batch of them fails.
	RemoveTarget(ctx context.Context, name string, revision int64, force bool) (dead int, err error)
	// ReconcileTargets makes the rows of source file exactly want, in one transaction;
	// rows of source api are not touched, and one of the same name is a fault.Conflict.
	// Whether a target is off stays. It returns the names that it added, changed and
	// removed; what waits for a removed one is kept.
	ReconcileTargets(ctx context.Context, want []TargetRow) (added, changed, removed []string, err error)
}
