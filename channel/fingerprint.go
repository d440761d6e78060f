package channel

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"fmt"
	"hash"
	"reflect"
	"slices"
	"strings"
)

// digest is a keyed hash over the fields of a config that belong to its
// connection, each part quoted so that no two configs write the same bytes.
type digest struct{ hash.Hash }

// put cannot fail: a hash's Write does not.
func (d digest) put(format string, args ...any) { _, _ = fmt.Fprintf(d, format, args...) }

func fingerprint(key []byte, name string, v reflect.Value) string {
	d := digest{hmac.New(sha256.New, key)}
	d.put("%q", name)
	for f := range fields(v.Type()) {
		if slices.Contains(f.opts, "connection") {
			d.put("\x00%q=", f.key)
			d.value(v.FieldByIndex(f.Index))
		}
	}
	return hex.EncodeToString(d.Sum(nil)[:16])
}

// value writes a value with its secrets revealed and its maps sorted.
func (d digest) value(v reflect.Value) {
	if secret, ok := reflect.TypeAssert[interface{ Reveal() string }](v); ok {
		d.put("%q", secret.Reveal())
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if text, ok := reflect.TypeAssert[encoding.TextMarshaler](v); ok {
			b, _ := text.MarshalText() // what was read can be written
			d.put("%q", b)
			return
		}
		for f := range fields(v.Type()) {
			d.put("%q:", f.key)
			d.value(v.FieldByIndex(f.Index))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		d.put("{%d}", len(keys))
		for _, k := range keys {
			d.put("%q:", k.String())
			d.value(v.MapIndex(k))
		}
	case reflect.Slice:
		d.put("[%d]", v.Len())
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	case reflect.Pointer:
		d.put("%t", v.IsNil())
		if !v.IsNil() {
			d.value(v.Elem())
		}
	default:
		d.put("%q", fmt.Sprint(v.Interface()))
	}
}
