package app

import (
	"context"
	"errors"
	"log/slog"

	"leasehold/config"
	"leasehold/internal/fault"
	"leasehold/store"
	"leasehold/store/sqlite"
)

// autoRestore puts the newest sound backup of this box in the place of its damaged
// database, which is moved aside. damage is why; it is the error when no backup is
// sound.
func autoRestore(ctx context.Context, c *config.Config, url string, damage error, log *slog.Logger) error {
	path, err := store.Path(url)
	if err != nil {
		return damage
	}
	all, err := sqlite.OwnBackups(c.BackupsDir(), string(c.Node.DataDir))
	if err != nil {
		return errors.Join(damage, err)
	}
	log.ErrorContext(ctx, "store damaged", "error", damage, "backups", len(all))
	for _, b := range all {
		r, err := sqlite.Restore(ctx, b.Path, path, sqlite.RestoreOptions{Replace: true, ForceNetworkFS: c.Store.ForceNetworkFS})
		switch {
		case err == nil:
			log.WarnContext(ctx, "store restored by itself", "backup", b.Path, "of", r.At, "damaged", r.Aside, "through_seq", r.Through,
				"next_step", "what came after the backup is lost; look for it in "+r.Aside)
			return nil
		case fault.Is(err, fault.Corrupt), fault.Is(err, fault.Invalid), fault.Is(err, fault.Newer): // of the backup: an older one may do
			log.ErrorContext(ctx, "backup of no use", "backup", b.Path, "error", err)
		default:
			return errors.Join(damage, err)
		}
	}
	return damage
}
