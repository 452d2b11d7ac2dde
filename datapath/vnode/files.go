package vnode

import (
	"errors"
	"fmt"
	"os"
	"path"
	"reflect"

	"github.com/moby/sys/user"
	"golang.org/x/sys/unix"

	"sublet/plan"
	"sublet/vnet"
)

// changeFiles ends what runs in a node whose files become others, or are kept from now
// on, or no longer: its pause process puts them in place.
func (p *Part) changeFiles(s plan.Setup) error {
	was, err := p.setupOf(s.Key())
	if err == nil && (was.State != s.State || was.Serial != s.Serial) {
		if err := p.forget(s.Key()); err != nil || s.Keeps() {
			return err
		}
		return p.dropKept(s.Key())
	}
	if err == nil && reflect.DeepEqual(was.Files, s.Files) {
		return nil // what was given cannot be read: all is put in place again
	}
	return p.endAll(s.Key())
}

func (s pause) putAll(files []vnet.File) error {
	for _, file := range files {
		if err := s.put(file); err != nil {
			return fmt.Errorf("files: %s: %w", printable(file.Path), err)
		}
	}
	return nil
}

// put writes a file of the request's in place of what the node has there. It
// runs where nothing of the host's is left and nothing else runs: no link of the
// image's, or of the tenant's, leads out. Directories that are made, and the one
// that the file is in, are the node's root's.
func (s pause) put(f vnet.File) error {
	for _, dir := range above(f.Path) {
		switch err := os.Mkdir(dir, 0o755); {
		case errors.Is(err, os.ErrExist) && (dir != path.Dir(f.Path) || !isOpen(dir)):
		case err != nil && !errors.Is(err, os.ErrExist):
			return err
		default:
			if err := os.Chown(dir, int(s.Owner.UID), int(s.Owner.GID)); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(f.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.Unwrap(err)
	}
	return s.write(f)
}

func (s pause) write(f vnet.File) error {
	file, err := os.OpenFile(f.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return errors.Unwrap(err)
	}
	_, err = file.WriteString(f.Text)
	if err == nil {
		err = s.own(file, f.Owner)
	}
	return errors.Join(err, file.Chmod(os.FileMode(f.Permissions())), file.Close())
}

// own gives a file to a user of the node; "": to root.
func (s pause) own(file *os.File, owner string) error {
	of := &user.ExecUser{}
	if owner != "" {
		found, err := account(owner)
		if err != nil {
			return err
		}
		of = found
	}
	uid, gid := s.Owner.Outside(of.Uid, of.Gid)
	return file.Chown(uid, gid)
}
