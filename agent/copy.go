package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sublet/plan"
	"sublet/vnet"
)

// saveCopy keeps the plan where a restarted agent finds it: the old one or
// the new one, never half of either.
func saveCopy(path string, h plan.Host) error {
	text, err := plan.Seal(h)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temporary := path + ".new"
	if err := writeSynced(temporary, text); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// loadCopy reads the plan kept by an earlier agent of the host; known is false
// without one, or with one that cannot be relied upon.
func loadCopy(path string, host vnet.HostID) (h plan.Host, known bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return plan.Host{}, false, nil
	}
	if err == nil {
		h, err = plan.Unseal(text)
	}
	if err == nil && h.Host != host {
		err = fmt.Errorf("it is of host %q", h.Host)
	}
	if err != nil {
		return plan.Host{}, false, fmt.Errorf("the local copy of the plan, %s, is not used: %w", path, err)
	}
	return h, true, nil
}
