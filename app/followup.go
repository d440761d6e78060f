package app

import (
	"context"
	"log/slog"
	"sync/atomic"

	"leasehold/channel"
	"leasehold/internal/vault"
)

// followUps seals and opens the follow-up addresses of events. Without a key to seal
// with an address is dropped, never its event: what answers it goes the ordinary way.
type followUps struct {
	vault *vault.Vault
	log   *slog.Logger

	dropping atomic.Bool // told once, until one is kept again
}

// seal is engine.Options.Seal.
func (f *followUps) seal(ctx context.Context, installation, event, address string) []byte {
	sealed, err := f.vault.SealFollowUp(ctx, installation, event, address)
	if err != nil {
		if !f.dropping.Swap(true) {
			f.log.WarnContext(ctx, "follow-up addresses dropped", "installation", installation, "error", err,
				"next_step", "events are kept, and what answers them goes the ordinary way; until then no address is used")
		}
		return nil
	}
	f.dropping.Store(false)
	return sealed
}

// open is outbound.Options.FollowUp.
func (f *followUps) open(ctx context.Context, installation, event string, sealed []byte) (channel.Secret, error) {
	address, err := f.vault.OpenFollowUp(ctx, installation, event, sealed)
	return channel.NewSecret(address), err //nolint:wrapcheck // it says what was being done
}
