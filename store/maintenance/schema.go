package maintenance

// Schema is how a database's tables and this program's fit together.
type Schema struct {
	Version   int64    `json:"version"`           // of the database; 0 = it has no tables yet
	Known     int64    `json:"known"`             // the newest that this program knows
	MinReader int64    `json:"min_reader"`        // a program must know this schema to use the database
	Pending   []string `json:"pending,omitempty"` // the migrations that the database lacks, in order
}

// The states of a schema.
const (
	SchemaFits    = "fits"    // the one that this program knows
	SchemaPending = "pending" // older, or not there yet: migrations are to be applied
	SchemaNewer   = "newer"   // and this program may use it all the same
	SchemaTooNew  = "too_new" // this program may not use it
)

// State is one of the four.
func (s Schema) State() string {
	switch {
	case s.Version > s.Known && s.MinReader > s.Known:
		return SchemaTooNew
	case s.Version > s.Known:
		return SchemaNewer
	case len(s.Pending) > 0:
		return SchemaPending
	default:
		return SchemaFits
	}
}
