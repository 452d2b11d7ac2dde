package vnode

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
)

// layer is a file system in a node: files that nobody changes, and above them
// what the node writes.
type layer struct {
	at    string   // where it is in the node
	lower *os.File // its files: a mount that is nowhere yet
	own   *os.File // directory of what the node writes: upper, and overlayfs's work
}

func (l layer) close() { closeAll([]*os.File{l.lower, l.own}) }

// layersDir holds what a node writes, in its memory or on its disk: a directory for
// each layer.
const layersDir = "layers"

// layers opens those of the node, the root first. What it writes is made the
// first time.
func (s pause) layers(userns *os.File) (list []layer, err error) {
	if !s.Root.Mapped {
		userns = nil
	}
	places := s.Root.places()
	dir := s.Layers
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := s.makeLayers(dir, places); err != nil {
			return nil, fmt.Errorf("make the node's directories: %w", err)
		}
	}
	for _, at := range places {
		l := layer{at: at}
		l.own, err = os.Open(path.Join(dir, inOneWord(at)))
		if errors.Is(err, os.ErrNotExist) && at != "/" {
			continue // mounted on the host since the node began
		}
		if err == nil {
			l.lower, err = image.OpenTree(path.Join(s.Root.Tree, at), userns)
		}
		if list = append(list, l); err != nil {
			return list, err
		}
	}
	return list, nil
}

// places are where a node has a layer, the root first.
func (r rootFS) places() []string {
	if !r.Host {
		return []string{"/"}
	}
	return append([]string{"/"}, separate()...)
}

// makeLayers makes the directories that a node writes. They are in place when
// they are complete: later they are the tenant's, with any links in them.
func (s pause) makeLayers(dir string, places []string) error {
	next, uppers := dir+".next", make(map[string]string)
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	for _, at := range places {
		layer := path.Join(next, inOneWord(at))
		uppers[at] = layer + "/upper"
		if err := errors.Join(os.MkdirAll(uppers[at], 0o755), os.Mkdir(layer+"/work", 0o700)); err != nil {
			return err
		}
	}
	err := os.Chown(uppers["/"], int(s.Owner.UID), int(s.Owner.GID))
	if s.Root.Host {
		err = view{owner: s.Owner, uppers: uppers}.make()
	}
	if err != nil {
		return err
	}
	return os.Rename(next, dir)
}

// inOneWord names the directory of the layer of a place.
func inOneWord(at string) string { return strings.ReplaceAll(at, "/", "-") }

// mountOn mounts a layer on a directory.
func (s pause) mountOn(l layer, at string) error {
	lower := s.Run + "/lower"
	if err := attach(l.lower, lower); err != nil {
		return err
	}
	below, err := os.Open(lower) // by number: a path may have what overlayfs takes for a separator
	if err != nil {
		return err
	}
	defer below.Close()
	data := fmt.Sprintf("lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d/upper,workdir=/proc/self/fd/%d/work,redirect_dir=nofollow,metacopy=off,index=off", below.Fd(), l.own.Fd(), l.own.Fd())
	if err := mount("sublet", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return err
	}
	return unix.Unmount(lower, unix.MNT_DETACH) // the overlay has it
}
