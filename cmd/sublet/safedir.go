package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// safeDir makes sure that nobody but root and the caller could have put
// anything into a directory, or put the directory there: what runs as root
// follows names in it. It need not exist yet.
func safeDir(dir string) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := safeEntry(path, false); err != nil {
		return badInput{fmt.Errorf("%w: use a directory that only root can change, such as /run/sublet", err)}
	}
	for at := path; at != "/"; {
		at = filepath.Dir(at)
		if err := safeEntry(at, true); err != nil {
			return badInput{fmt.Errorf("%s is not safe: %w", dir, err)}
		}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		return safeDir(real)
	}
	return nil
}

// safeEntry checks one name. In a sticky directory such as /tmp others may
// add names but not replace ours.
func safeEntry(path string, stickyWillDo bool) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	stat := info.Sys().(*syscall.Stat_t)
	if stat.Uid != 0 && stat.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("%s belongs to user %d, who could replace what is in it", path, stat.Uid)
	}
	if info.Mode()&os.ModeSymlink != 0 || stickyWillDo && info.Mode()&os.ModeSticky != 0 {
		return nil
	}
	if mode := info.Mode().Perm(); mode&0o002 != 0 || mode&0o020 != 0 && stat.Gid != 0 {
		return fmt.Errorf("%s can be written by others (mode %04o)", path, mode)
	}
	return nil
}
