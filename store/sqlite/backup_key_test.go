package sqlite

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestBackupWithKey(t *testing.T) {
	t.Run("a locked key is in the backup, told apart from none, and gone from what is restored", func(t *testing.T) {
		s := openTest(t, Options{})
		dir := t.TempDir()
		locked := bytes.Repeat([]byte("locked-key-"), 20)
		for name, key := range map[string][]byte{"keyed.db": locked, "bare.db": nil} {
			path := filepath.Join(dir, name)
			_, err := s.BackupWithKey(t.Context(), path, key)
			must(t, err)
			found, err := ReadBackup(t.Context(), path)
			must(t, err)
			want(t, name+": locked key", string(found.Locked), string(key))
		}
		to := filepath.Join(dir, "restored.db")
		_, err := Restore(t.Context(), filepath.Join(dir, "keyed.db"), to, RestoreOptions{})
		must(t, err)
		content, err := os.ReadFile(to)
		must(t, err)
		want(t, "the key in what is restored", bytes.Contains(content, []byte("locked-key-")), false)
	})
}
