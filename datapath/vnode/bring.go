package vnode

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/datapath/kernel"
	"sublet/plan"
)

// layersIn are the layers of a node that is being brought. What is a file system of
// its own on the host that an archive is from need not be one here.
type layersIn struct {
	places []string                // the root first
	uppers map[string]*image.Upper // by place
}

// newLayersIn makes the directories that a node writes, as for one that begins.
func newLayersIn(ctx context.Context, dir string, s plan.Setup, owner image.Owner, left *image.UpperLimits) (*layersIn, error) {
	root := rootFS{Host: s.RootImage() == ""}
	l := &layersIn{places: root.places(), uppers: make(map[string]*image.Upper)}
	if err := (pause{Root: root, Owner: owner}).makeLayers(dir, l.places); err != nil {
		return nil, fmt.Errorf("make the node's directories: %w", err)
	}
	for _, at := range l.places {
		u, err := image.OpenUpper(ctx, filepath.Join(dir, inOneWord(at), "upper"), owner, left)
		if err != nil {
			l.close()
			return nil, err
		}
		l.uppers[at] = u
	}
	return l, nil
}

func (l *layersIn) close() {
	for _, u := range l.uppers {
		u.Close()
	}
}

// add does what one entry says.
func (l *layersIn) add(h *tar.Header, content io.Reader) error {
	at, ok := pathOf(h.Name)
	if !ok {
		return fmt.Errorf("%w: %.200q is in no layer of a node", image.ErrArchive, h.Name)
	}
	one, place := *h, l.placeOf(at)
	one.Name = strings.TrimPrefix(at, place)
	if h.Typeflag == tar.TypeLink {
		first, ok := pathOf(h.Linkname)
		if !ok || l.placeOf(first) != place {
			return fmt.Errorf("%w: %.200q is a link to %.200q, which is not in its layer", image.ErrArchive, h.Name, h.Linkname)
		}
		one.Linkname = strings.TrimPrefix(first, place)
	}
	return l.uppers[place].Add(&one, content)
}

// placeName is what inOneWord gives.
var placeName = regexp.MustCompile(`^-[a-z-]{0,32}$`)

// pathOf is where the entry of an archive is in its node.
func pathOf(name string) (at string, ok bool) {
	rest, ok := strings.CutPrefix(name, layersDir+"/")
	place, below, _ := strings.Cut(rest, "/")
	return path.Clean(strings.ReplaceAll(place, "-", "/") + "/" + below), ok && placeName.MatchString(place)
}

// placeOf is the layer that a path of the node is in.
func (l *layersIn) placeOf(at string) string {
	for place := at; place != "/"; place = path.Dir(place) {
		if l.uppers[place] != nil {
			return place
		}
	}
	return "/"
}

// mountNowhere mounts a file system for this process alone: it goes with the last
// file that is open in it, however this process ends (fsopen(2), fsmount(2)).
func mountNowhere(file string) (*os.File, error) {
	if why := Keeping(); why != "" {
		return nil, errors.New(why)
	}
	disk, err := openAlone(file)
	if err != nil {
		return nil, err
	}
	defer disk.Close()
	loop, err := attachLoop(disk)
	if err != nil {
		return nil, fmt.Errorf("make a device of what it keeps: %w", err)
	}
	defer loop.Close()
	fd, err := unix.Fsopen("ext4", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("mount what it keeps: %w", err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.FsconfigSetString(fd, "source", loop.Name()), unix.FsconfigSetString(fd, "errors", "remount-ro"), unix.FsconfigCreate(fd)); err != nil {
		return nil, fmt.Errorf("mount what it keeps: %w", err)
	}
	tree, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOATIME)
	if err != nil {
		return nil, fmt.Errorf("mount what it keeps: %w", err)
	}
	defer unix.Close(tree)
	root, err := unix.Openat(tree, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(root), "kept"), nil
}

// hiddenKept makes a directory that an audit takes for one that is being made.
func (p *Part) hiddenKept() (string, error) {
	p.busy.RLock() // nobody sweeps
	defer p.busy.RUnlock()
	if p.Kept == "" {
		return "", errors.New("this host has no place for what nodes keep")
	}
	if err := kernel.MkdirAll(p.Kept, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(p.Kept, hiddenKept)
	if err == nil {
		p.brought.Store(filepath.Base(dir), true)
	}
	return dir, err
}

// exchange puts a directory of kept files in the place of what a node has, and starts
// the node anew.
func (p *Part) exchange(s plan.Setup, dir string) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	key := s.Key()
	if is, err := p.setupOf(key); err != nil || !is.Keeps() || is.Serial != s.Serial || is.Carried != s.Carried {
		return errors.Join(err, ErrNotKept) // it has gone meanwhile
	}
	if err := p.stopPrograms(key); err != nil {
		return err
	}
	if err := p.replaceKept(key, dir); err != nil {
		return fmt.Errorf("bring what node %s keeps: %w", key, err)
	}
	_ = p.start(s) // what failed, the next audit does
	return nil
}

// awaitPrograms waits until it is known what became of a node's programs, for a while
// at most, and has that told.
func (p *Part) awaitPrograms(s plan.Setup) {
	if s.Carried {
		return // they begin once all is here
	}
	const most, again = 10 * time.Second, 20 * time.Millisecond
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(again) {
		whole, err := p.whole(s)
		if err != nil || len(programsOf(whole.Setup)) == 0 {
			return
		}
		if op, text := p.problem(whole); text == "" || op == plan.Carry {
			break
		}
	}
	if p.Changed != nil {
		p.Changed()
	}
}

// replaceKept ends the node's first process, with which all others end.
func (p *Part) replaceKept(key, dir string) error {
	lock := p.locks.of(key)
	lock.Lock()
	defer lock.Unlock()
	if err := p.host.Group(key).Sub(pauseGroup).Remove(); err != nil {
		return err
	}
	if err := kernel.Unbind(p.keptPath(key)); err != nil {
		return err
	}
	link := p.keptDir(key)
	was, err := os.Readlink(link)
	if err := gone(err); err != nil {
		return err
	}
	next := filepath.Join(p.Kept, hiddenKept+"next-"+filepath.Base(dir)[len(hiddenKept):])
	if err := os.Symlink(filepath.Base(dir), next); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(next, link), syncFile(p.Kept)); err != nil {
		return err
	}
	if was != "" {
		return os.RemoveAll(p.keptDir(filepath.Base(was)))
	}
	return nil
}

// digests are those of images of machines, which are large and change rarely.
type digests struct {
	mu  sync.Mutex
	all map[string]string // by what tells one file from another
}

const mostDigests = 256

// of is the digest of a file (SHA-256).
func (d *digests) of(ctx context.Context, f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	st := info.Sys().(*syscall.Stat_t)
	key := fmt.Sprint(st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
	d.mu.Lock()
	known := d.all[key]
	d.mu.Unlock()
	if known != "" {
		return known, nil
	}
	sum := sha256.New()
	if err := image.Copy(ctx, sum, io.NewSectionReader(f, 0, info.Size()), info.Size()); err != nil {
		return "", fmt.Errorf("read the image of the machine: %w", err)
	}
	known = fmt.Sprintf("%x", sum.Sum(nil))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil || len(d.all) >= mostDigests {
		d.all = make(map[string]string)
	}
	d.all[key] = known
	return known, nil
}

// below tells one image of machines from another on this host.
func below(disk *image.Disk) (string, error) {
	info, err := disk.File.Stat()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano)), nil
}
