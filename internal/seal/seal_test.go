package seal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"leasehold/internal/fault"
)

var owner = Owner{"secret", "acme-bot"}

func TestKey(t *testing.T) {
	k := NewKey()
	t.Run("what is sealed opens again, and shows nothing", func(t *testing.T) {
		sealed := k.Seal(owner, []byte("hunter2-hunter2"))
		if bytes.Contains(sealed, []byte("hunter2")) {
			t.Error("got the value in what is sealed, want it hidden")
		}
		got, err := k.Open(owner, sealed)
		if err != nil || string(got) != "hunter2-hunter2" {
			t.Errorf("got %q, %v, want what was sealed", got, err)
		}
		if KeyID(sealed) != k.ID() {
			t.Errorf("key id: got %s, want %s", KeyID(sealed), k.ID())
		}
	})
	t.Run("one value is never sealed alike twice", func(t *testing.T) {
		if bytes.Equal(k.Seal(owner, nil), k.Seal(owner, nil)) {
			t.Error("got the same bytes twice, want other ones")
		}
	})
	t.Run("it opens as nothing else than what it was sealed as", func(t *testing.T) {
		sealed := k.Seal(Owner{"ab", "c"}, []byte("x"))
		for _, o := range []Owner{{"a", "bc"}, {"ab", "d"}, {"abc", ""}, {"x", "c"}} {
			if _, err := k.Open(o, sealed); !errors.Is(err, ErrForged) {
				t.Errorf("%v: got %v, want it refused", o, err)
			}
		}
	})
	t.Run("every changed byte is noticed", func(t *testing.T) {
		sealed := k.Seal(owner, []byte("value"))
		for i := range sealed {
			forged := bytes.Clone(sealed)
			forged[i] ^= 1
			if got, err := k.Open(owner, forged); err == nil {
				t.Errorf("byte %d: got %q, want an error", i, got)
			}
		}
		for n := range sealed {
			if _, err := k.Open(owner, sealed[:n]); err == nil {
				t.Errorf("cut at %d: got no error, want one", n)
			}
		}
	})
	t.Run("another key is refused by the ids of both", func(t *testing.T) {
		other := NewKey()
		_, err := other.Open(owner, k.Seal(owner, nil))
		if err == nil || !strings.Contains(err.Error(), k.ID()) || !strings.Contains(err.Error(), other.ID()) {
			t.Errorf("got %v, want both ids named", err)
		}
	})
	t.Run("its text makes the same key, and printing it shows none", func(t *testing.T) {
		again, err := ParseKey(k.Text())
		if err != nil || again.ID() != k.ID() || again.Text() != k.Text() {
			t.Fatalf("got %v, want the same key", err)
		}
		shown := fmt.Sprintf("%v %+v %#v", k, k, k)
		if strings.Contains(shown, fmt.Sprintf("%x", k.secret[:8])) || strings.Contains(shown, k.Text()) {
			t.Errorf("got %s, want no key in it", shown)
		}
	})
	t.Run("what is no key is refused without being repeated", func(t *testing.T) {
		for _, text := range []string{"", "hunter2", Prefix, Prefix + "aHVudGVyMg==", strings.TrimPrefix(k.Text(), Prefix), k.Text() + "A"} {
			if _, err := ParseKey(text); err == nil || text != "" && strings.Contains(err.Error(), text) && text != Prefix {
				t.Errorf("%q: got %v, want an error without it", text, err)
			}
		}
	})
}

func TestFile(t *testing.T) {
	a, b := NewKey(), NewKey()
	path := filepath.Join(t.TempDir(), "master.key")
	t.Run("keys are kept in their order, for the owner alone", func(t *testing.T) {
		if got, err := File(path).Read(); err != nil || len(got) != 0 {
			t.Fatalf("no file: got %d keys, %v, want none", len(got), err)
		}
		for _, ring := range []Ring{{a}, {b, a}, {b}} {
			if err := File(path).Write(ring); err != nil {
				t.Fatal(err)
			}
			got, err := File(path).Read()
			if err != nil || got.Text() != ring.Text() {
				t.Errorf("got %v, %v, want %v", got.IDs(), err, ring.IDs())
			}
		}
		info, err := os.Stat(path)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("got %v, %v, want mode 0600", info.Mode(), err)
		}
		if _, ok := (Ring{b}).Find(a.ID()); ok {
			t.Error("got a key that is not at hand, want none")
		}
	})
	t.Run("what a killed write left beside it goes with the next one, or without", func(t *testing.T) {
		left := filepath.Join(filepath.Dir(path), ".master.key.123")
		for name, f := range map[string]func() error{"Write": func() error { return File(path).Write(Ring{b}) }, "Tidy": func() error { File(path).Tidy(); return nil }} {
			if err := errors.Join(os.WriteFile(left, []byte(a.Text()), 0o600), f()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: got %v of it, want it gone", name, err)
			}
			if got, err := File(path).Read(); err != nil || got.Text() != (Ring{b}).Text() {
				t.Errorf("%s: got %v, %v, want the key kept", name, got.IDs(), err)
			}
		}
	})
	t.Run("a file that others can read, or that holds something else, is refused", func(t *testing.T) {
		if err := os.WriteFile(path, []byte(a.Text()+"\nhunter2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := File(path).Read(); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "line 2") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v, want line 2 named and not repeated", err)
		}
		if runtime.GOOS == "windows" {
			return // it has no such modes
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := File(path).Read(); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("got %v, want the command that mends it", err)
		}
	})
}

func TestPassphrase(t *testing.T) {
	k := NewKey()
	t.Run("a passphrase opens what it locked, and no other does", func(t *testing.T) {
		locked, err := k.lock("correct horse", 10)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Unlock(locked, "correct horse")
		if err != nil || got.Text() != k.Text() {
			t.Errorf("got %v, want the key", err)
		}
		if _, err := Unlock(locked, "correct horsf"); !errors.Is(err, ErrPassphrase) {
			t.Errorf("got %v, want it refused", err)
		}
		for i := range locked {
			forged := bytes.Clone(locked)
			if forged[i] ^= 1; i >= 1 && i < 4 {
				continue // the high bytes of the rounds: they only cost time
			}
			if _, err := Unlock(forged, "correct horse"); err == nil {
				t.Errorf("byte %d: got no error, want one", i)
			}
		}
	})
	t.Run("a short one is refused, and what is no locked key too", func(t *testing.T) {
		if _, err := k.Lock("short"); err == nil {
			t.Error("got a short passphrase taken, want it refused")
		}
		for _, locked := range [][]byte{nil, {1, 2}, bytes.Repeat([]byte{0xff}, 80), append([]byte{version, 0xff, 0xff, 0xff, 0xff}, make([]byte, 80)...)} {
			if _, err := Unlock(locked, "correct horse"); err == nil {
				t.Errorf("%v: got no error, want one", locked)
			}
		}
	})
}
