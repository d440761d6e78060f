package vault

import (
	"bytes"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"leasehold/internal/fault"
	"leasehold/internal/seal"
)

// Secret is a secret that somebody set.
type Secret struct {
	Name      string    `json:"name"`
	UpdatedAt time.Time `json:"updated_at"`
	Sealed    []byte    `json:"-"`
}

// SigningKey signs what a target gets, until it is retired.
type SigningKey struct {
	ID        string    `json:"id"`
	Target    string    `json:"target"`
	CreatedAt time.Time `json:"created_at"`
	RetiredAt time.Time `json:"retired_at,omitzero"` // zero = it signs
	Sealed    []byte    `json:"-"`
}

// FollowUpKey seals follow-up addresses. There are two at most: the newest seals, and
// the one before it opens what it has sealed.
type FollowUpKey struct {
	ID        string
	CreatedAt time.Time
	Sealed    []byte
}

// Master names the master key that everything is sealed with, and proves it.
type Master struct {
	ID    string // "" = nothing is sealed
	Proof []byte // a sealed value that only this key opens
}

// Contents are all that the store keeps of a vault.
type Contents struct {
	Version     int64
	Master      Master
	Secrets     []Secret     // by name
	SigningKeys []SigningKey // by id

	FollowUpKeys []FollowUpKey // by id
}

func (s Secret) owner() seal.Owner     { return seal.Owner{Kind: "secret", Name: s.Name} }
func (k SigningKey) owner() seal.Owner { return seal.Owner{Kind: "signing key", Name: k.ID} }

func (k FollowUpKey) owner() seal.Owner { return seal.Owner{Kind: "follow-up key", Name: k.ID} }

// proofOwner is what a Master's proof was sealed as.
var proofOwner = seal.Owner{Kind: "master key", Name: "proof"}

func masterOf(k seal.Key) Master { return Master{ID: k.ID(), Proof: k.Seal(proofOwner, nil)} }

// The kinds of rows.
const (
	RowMaster     = 0
	RowSecret     = 1
	RowSigningKey = 2

	RowFollowUpKey = 3
)

// Row is a line of the contents as a database has it: times are milliseconds since
// 1970, 0 where there is none.
type Row struct {
	Kind   int
	Name   string // of a secret; the id of a key
	Target string // of a signing key
	Sealed []byte
	At     int64 // when a secret was set or a key made; the version, of the master key's row
	Ended  int64 // when a signing key was retired
}

// Collect makes contents of rows.
func Collect(rows []Row) Contents {
	var c Contents
	for _, r := range rows {
		switch r.Kind {
		case RowMaster:
			c.Version, c.Master = r.At, Master{ID: r.Name, Proof: r.Sealed}
		case RowSecret:
			c.Secrets = append(c.Secrets, Secret{Name: r.Name, UpdatedAt: timeOf(r.At), Sealed: r.Sealed})
		case RowSigningKey:
			c.SigningKeys = append(c.SigningKeys, SigningKey{ID: r.Name, Target: r.Target, CreatedAt: timeOf(r.At), RetiredAt: timeOf(r.Ended), Sealed: r.Sealed})
		case RowFollowUpKey:
			c.FollowUpKeys = append(c.FollowUpKeys, FollowUpKey{ID: r.Name, CreatedAt: timeOf(r.At), Sealed: r.Sealed})
		}
	}
	return c
}

// Rows are the rows of contents; the master key's comes first.
func (c Contents) Rows() []Row {
	rows := []Row{{Kind: RowMaster, Name: c.Master.ID, Sealed: c.Master.Proof, At: c.Version}}
	for _, s := range c.Secrets {
		rows = append(rows, Row{Kind: RowSecret, Name: s.Name, Sealed: s.Sealed, At: s.UpdatedAt.UnixMilli()})
	}
	for _, k := range c.SigningKeys {
		r := Row{Kind: RowSigningKey, Name: k.ID, Target: k.Target, Sealed: k.Sealed, At: k.CreatedAt.UnixMilli()}
		if !k.RetiredAt.IsZero() {
			r.Ended = k.RetiredAt.UnixMilli()
		}
		rows = append(rows, r)
	}
	for _, k := range c.FollowUpKeys {
		rows = append(rows, Row{Kind: RowFollowUpKey, Name: k.ID, Sealed: k.Sealed, At: k.CreatedAt.UnixMilli()})
	}
	return rows
}

// needsMaster reports whether people would miss what the master key has sealed. What
// follow-up keys have sealed is of use for minutes, and nobody waits for it.
func (c Contents) needsMaster() bool { return len(c.Secrets)+len(c.SigningKeys) > 0 }

// Difference is what it takes to make old contents new ones: the rows to write, with
// the next version in the master key's, and those to delete. Nothing: both are alike.
func Difference(old, next Contents) (put, drop []Row) {
	was, is := old.Rows(), next.Rows()
	for _, r := range is {
		if i := slices.IndexFunc(was, r.names); i < 0 || !r.same(was[i]) {
			put = append(put, r)
		}
	}
	for _, r := range was {
		if !slices.ContainsFunc(is, r.names) {
			drop = append(drop, r)
		}
	}
	if len(put)+len(drop) == 0 {
		return nil, nil
	}
	put = slices.DeleteFunc(put, func(r Row) bool { return r.Kind == RowMaster })
	master := is[0]
	master.At = old.Version + 1
	return append(put, master), drop
}

// names reports whether both are of one thing. There is one master key's.
func (r Row) names(o Row) bool { return r.Kind == o.Kind && (r.Kind == RowMaster || r.Name == o.Name) }

func (r Row) same(o Row) bool {
	return r.Name == o.Name && r.Target == o.Target && r.At == o.At && r.Ended == o.Ended && bytes.Equal(r.Sealed, o.Sealed)
}

// timeOf reads a time of a row.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// secretMax bounds a secret: 64 KiB, more than any key or token.
const secretMax = 64 << 10

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// checkSecret says what is wrong with a secret, without its value.
func checkSecret(name, value string) error {
	switch {
	case !nameForm.MatchString(name):
		return fault.Errorf(fault.Invalid, `%q is no name of a secret: letters, digits, ".", "_" and "-", beginning with a letter or digit, at most 128`, name)
	case value == "":
		return fault.Errorf(fault.Invalid, "secret %s: its value is empty; to take it away, run leasehold secrets remove %s", name, name)
	case len(value) > secretMax:
		return fault.Errorf(fault.Invalid, "secret %s: its value is larger than 64 KiB", name)
	case !utf8.ValidString(value):
		return fault.Errorf(fault.Invalid, "secret %s: its value is not UTF-8 text", name)
	}
	return nil
}
