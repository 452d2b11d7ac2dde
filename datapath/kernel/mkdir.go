package kernel

import (
	"errors"
	"os"
)

// mkdirTries bounds how often another host's Tidy may come between.
const mkdirTries = 100

// MkdirAll is os.MkdirAll where directories of all hosts are removed when they
// are empty: one that another host takes away meanwhile is made again.
func MkdirAll(path string, mode os.FileMode) (err error) {
	for range mkdirTries {
		if err = os.MkdirAll(path, mode); !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return err
}
