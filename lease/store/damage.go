package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
)

// ErrCorrupt is wrapped by what Open says of a data directory that is damaged.
var ErrCorrupt = errors.New("the store is damaged")

// damaged says what is wrong and what can be done about it.
func damaged(dir, what string) error {
	return fmt.Errorf("%w: %s: put a copy of %s back, or move it away to begin with an empty one; running networks stay until hosts are adopted (sublet hosts)", ErrCorrupt, what, dir)
}

// inspect looks for damage before etcd does, which panics.
func inspect(dir string) error {
	member := filepath.Join(dir, "member")
	logs, err := filepath.Glob(filepath.Join(member, "wal", "*.wal"))
	if err != nil {
		return err
	}
	database := filepath.Join(member, "snap", "db")
	info, err := os.Stat(database)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(logs) == 0:
		return nil // a new one
	case errors.Is(err, fs.ErrNotExist):
		return damaged(dir, database+" is missing")
	case err != nil:
		return fmt.Errorf("look at the store's database: %w", err)
	}
	used, err := inspectDatabase(database, info.Size())
	if err != nil {
		return damaged(dir, fmt.Sprintf("%s: %v", database, err))
	}
	if used && len(logs) == 0 {
		return damaged(dir, filepath.Join(member, "wal")+" has no logs")
	}
	return nil
}

// inspectDatabase reads every page of a database, and says whether anything
// was ever written to it: a server that was killed at its first start leaves
// one without logs.
func inspectDatabase(path string, size int64) (used bool, err error) {
	db, err := openDatabase(path)
	if err != nil {
		return false, err
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		if tx.Size() > size {
			return fmt.Errorf("it has %d bytes of %d", size, tx.Size())
		}
		first := visit(tx)
		if first != nil {
			return first
		}
		for err := range tx.Check() {
			if first == nil {
				first = err
			}
		}
		if keys := tx.Bucket([]byte("key")); first == nil && keys != nil {
			key, _ := keys.Cursor().First()
			used = key != nil
		}
		return first
	})
	return used, err
}

// visit reads every page that is in use. Check reads them in a goroutine of its
// own, where the panic of a damaged one ends the program.
func visit(tx *bolt.Tx) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // damaged lengths lead out of the file
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return tx.ForEach(func(_ []byte, b *bolt.Bucket) error { return visitBucket(b) })
}

func visitBucket(b *bolt.Bucket) error {
	return b.ForEach(func(key, value []byte) error {
		if value != nil {
			return nil
		}
		if inner := b.Bucket(key); inner != nil {
			return visitBucket(inner)
		}
		return fmt.Errorf("the bucket %q is missing", key)
	})
}

// openDatabase opens a database for reading; one that cannot be is an error,
// not a panic.
func openDatabase(path string) (db *bolt.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
}

// guarded runs etcd's start, in which what is left of damage is a panic.
func guarded(dir string, start func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = damaged(dir, fmt.Sprint(p))
		}
	}()
	return start()
}
