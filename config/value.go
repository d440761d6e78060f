package config

// Path is a file or folder. Load makes it absolute: relative to the folder of
// the file it stands in, in the environment relative to the working folder.
type Path string

// Reference says where a secret is.
type Reference struct {
	Kind string // env, file, credential or secret; "" = there is none
	Name string // the variable, the absolute path, the name in the credentials folder or in the store
}

// Value is a string that may be a secret: a literal or a reference.
type Value struct {
	Literal string
	Reference
}

// MaybeSecret marks a type whose value the file may hold as a literal.
func (Value) MaybeSecret() {}

// IsZero reports whether there is neither a literal nor a reference.
func (v Value) IsZero() bool { return v == Value{} }

// Resolver returns the secret behind a reference. Secrets.Resolve is one; any
// function of this shape is.
type Resolver = func(kind, name string) (string, error)

// Resolve returns the literal, or what the reference refers to.
func (v Value) Resolve(resolve Resolver) (string, error) {
	if v.Kind == "" {
		return v.Literal, nil
	}
	return resolve(v.Kind, v.Name)
}
