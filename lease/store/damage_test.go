package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/lease"
	"sublet/vnet"
)

// written is the data directory of a store with some leases.
func written(t *testing.T) Config {
	t.Helper()
	config := Config{Dir: dir(t), TTL: time.Second}
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	for serial := range uint64(50) {
		save(t, s, lease.Changes{Counters: lease.Counters{Serial: serial + 1}, Leases: []vnet.Lease{sample(serial, 100)}})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return config
}

// TestDamageIsSaid: whatever happened to the files, Open says in one line what
// is damaged and what to do, within seconds; it neither panics nor begins anew.
func TestDamageIsSaid(t *testing.T) {
	db, snap, wal := "member/snap/db", "member/snap", "member/wal"
	random := func(seed uint64) func(path string) error {
		return func(path string) error {
			r := rand.New(rand.NewPCG(seed, 1))
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return err
			}
			info, err := f.Stat()
			for i := 0; err == nil && i < 8; i++ {
				page := make([]byte, 4096)
				for j := range page {
					page[j] = byte(r.Uint32())
				}
				_, err = f.WriteAt(page, 4096*r.Int64N(info.Size()/4096))
			}
			return errors.Join(err, f.Close())
		}
	}
	truncated := func(to int64) func(string) error { return func(path string) error { return os.Truncate(path, to) } }
	for _, c := range []struct {
		name, path, says string
		damage           func(path string) error
		sound            bool // may: nothing that is in use was hit
	}{
		{"pages", db, "db", random(1), true},
		{"other pages", db, "db", random(2), true},
		{"more pages", db, "db", random(3), true},
		{"cut to half", db, "db", truncated(64 << 10), false},
		{"cut to a page", db, "db", truncated(4096), false},
		{"emptied", db, "db", truncated(0), false},
		{"no database", db, "db is missing", os.Remove, false},
		{"no snap", snap, "db is missing", os.RemoveAll, false},
		{"no wal", wal, "no logs", os.RemoveAll, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := written(t)
			if err := c.damage(filepath.Join(config.Dir, c.path)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			s, err := Open(ctx, config)
			if err == nil {
				defer s.Close()
				if state, failed := s.Load(ctx); !c.sound || failed == nil && len(state.Leases) != 50 {
					t.Fatalf("opened with %d leases, %v", len(state.Leases), failed)
				}
				return
			}
			text := err.Error()
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(text, c.says) || !strings.Contains(text, "put a copy") || strings.Contains(text, "\n") {
				t.Errorf("says %q", text)
			}
		})
	}
}

// TestAFirstStartThatWasKilled is no damage: there is nothing to lose.
func TestAFirstStartThatWasKilled(t *testing.T) {
	config := Config{Dir: dir(t), TTL: time.Second}
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"member/wal", "member"} {
		if err := os.RemoveAll(filepath.Join(config.Dir, left)); err != nil {
			t.Fatal(err)
		}
		if err := inspect(config.Dir); left == "member" && err != nil {
			t.Error(err)
		}
	}
	open(t, config)
}
