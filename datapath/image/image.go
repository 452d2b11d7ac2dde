// Package image keeps the root file systems of images on a host: it reads an
// image from a file or a registry, checks every byte of it against its digests,
// and unpacks it once into a directory that nobody changes.
//
//	DATA/images/tree/sha256-HEX-ids/root    the files of the image whose configuration has this digest
//	DATA/images/tree/sha256-HEX-ids/config  that configuration
//	DATA/images/tree/sha256-HEX-ids/size    what it takes on disk
//	DATA/images/name/HEX                the digest that a registry's image had, by the digest of its name
//	DATA/images/half/...                what is being unpacked
package image

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// Config of a store.
type Config struct {
	Dir      string   // directory of the store; root's only
	Offered  string   // directory of the operator's images; "": none
	Limits   Limits   // zero: DefaultLimits
	Quota    int64    // bytes of all images, unpacked; 0: DefaultQuota
	Registry Registry // from which images may be fetched; nil: none
	// Apart is a process that calls Unpack.
	Apart func() *exec.Cmd
	// Changed is called when a fetch ended that nobody waited for.
	Changed func()
}

// Limits of one image. What is beyond is not unpacked.
type Limits struct {
	Bytes   int64 // of its layers, unpacked
	Entries int   // of all layers
	Layers  int
	Time    time.Duration // for fetching and unpacking it
}

// DefaultLimits fit any image that is run as a container elsewhere: engines
// allow 127 layers, and large images have some hundred thousand files.
var DefaultLimits = Limits{Bytes: 16 << 30, Entries: 1 << 19, Layers: 127, Time: 15 * time.Minute}

// mostDocument bounds a manifest, an index and a configuration in bytes, as
// registries do (OCI distribution specification, pushing manifests).
const mostDocument = 4 << 20

// Owner is the user, and its group, who is root in the nodes that use an image, and
// the range that the nodes' other users have outside: user 1 is Base+1. All zero: all
// are who they are outside.
type Owner struct{ UID, GID, Base uint32 }

// MostID is the last user or group of a node.
const MostID = 1<<16 - 1

// nobody is who owns what belongs to users that a node does not have.
const nobody = 65534

// Outside is who a user and a group of a node are outside. A node without a range
// has root only.
func (o Owner) Outside(uid, gid int) (int, int) {
	if o == (Owner{}) {
		return inRange(uid), inRange(gid)
	}
	return o.outside(uid, o.UID), o.outside(gid, o.GID)
}

func (o Owner) outside(id int, root uint32) int {
	if id == 0 || o.Base == 0 {
		return int(root)
	}
	return int(o.Base) + inRange(id)
}

func inRange(id int) int {
	if id < 0 || id > MostID {
		return nobody
	}
	return id
}

// Image is an unpacked image.
type Image struct {
	ID     string // names the tree in the store; "": a directory of the operator's
	Root   string // directory
	Config v1.Config
}

// ErrFetching says that an image is on its way.
var ErrFetching = errors.New("it is being fetched")

// Store keeps images.
type Store struct {
	Config

	mu      sync.Mutex
	fetches map[string]*fetch
	wishes  map[string]wish // by node
	waiting []*turn         // fetches that have not begun, by time
	running []*turn

	making sync.Map // IDs of trees: the lock of who unpacks one

	room   sync.Mutex
	claims map[string]int64 // what images have that are being unpacked
	pinned map[string]bool  // IDs of trees that nodes use; nil: not known yet
}

// fetch is one that runs, or ended before anybody asked for its result.
type fetch struct {
	done   chan struct{}
	cancel context.CancelFunc
	image  Image
	err    error
	until  time.Time // an error stays the answer
	was    error     // the answer of the fetch before: of this one until it has another
	tries  int       // that failed before
}

// How long after a fetch that failed another one begins at the earliest: agents ask often,
// registries count. It doubles with each that found an image and cost more than that.
const (
	again     = 5 * time.Second
	mostAgain = 2 * time.Minute
)

// absent is why an image was not found.
type absent struct{ error }

func (a absent) Unwrap() error { return a.error }

// over says whether it has ended.
func (f *fetch) over() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// next is the fetch after one that ended, whose answer no longer holds.
func (f *fetch) next(now time.Time) *fetch {
	fresh := &fetch{done: make(chan struct{})}
	if f != nil {
		if !f.over() {
			return f
		}
		if now.Before(f.until) {
			return f
		}
		fresh.tries, fresh.was = f.tries+1, f.err
	}
	return fresh
}

// New opens a store and removes what was half unpacked when its last user ended.
// A directory has one user at a time.
func New(c Config) (*Store, error) {
	if c.Limits == (Limits{}) {
		c.Limits = DefaultLimits
	}
	if c.Quota == 0 {
		c.Quota = DefaultQuota
	}
	s := &Store{Config: c, claims: make(map[string]int64), fetches: make(map[string]*fetch), wishes: make(map[string]wish)}
	if err := os.RemoveAll(s.path("half")); err != nil {
		return nil, fmt.Errorf("remove half unpacked images: %w", err)
	}
	for _, dir := range []string{"half", "tree", "name"} {
		if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
			return nil, fmt.Errorf("make the store of images: %w", err)
		}
	}
	return s, nil
}

func (s *Store) path(names ...string) string {
	return filepath.Join(append([]string{s.Dir}, names...)...)
}

func keyOf(name string, owner Owner) string { return fmt.Sprint(owner.UID, " ", name) }

// Get is an image by the name that a tenant wrote, unpacked for nodes in which
// owner is root. All who want one at the same time share the work, which goes
// on when ctx ends: the error is ErrFetching then, and a later Get has the
// result; or, of one that failed before, that error. It ends when those who wanted it have left (Want, Leave).
func (s *Store) Get(ctx context.Context, name string, owner Owner) (Image, error) {
	key := keyOf(name, owner)
	s.mu.Lock()
	was := s.fetches[key]
	f := was.next(time.Now())
	if f != was {
		s.fetches[key] = f
		var fetching context.Context
		fetching, f.cancel = context.WithCancel(context.Background())
		go s.run(fetching, f, name, owner)
	}
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return Image{}, fmt.Errorf("image %s: %w", name, cmp.Or(f.was, ErrFetching))
	case <-f.done:
	}
	if f.err != nil {
		return Image{}, fmt.Errorf("image %s: %w", name, f.err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetches[key] == f {
		delete(s.fetches, key)
	}
	return f.image, nil
}

// forgive forgets failures of images that nobody has asked for since long.
func (s *Store) forgive(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, f := range s.fetches {
		if f.over() && now.Sub(f.until) > 2*mostAgain {
			delete(s.fetches, key)
		}
	}
}

func (s *Store) run(ctx context.Context, f *fetch, name string, owner Owner) {
	defer f.cancel()
	if id, ok := s.known(name, owner); ok {
		f.image, f.err = s.open(id) // without a turn: others may fetch for long
	} else {
		f.image, f.err = s.inTurn(ctx, name, owner)
	}
	if f.err != nil {
		f.until = time.Now().Add(again)
		if !errors.As(f.err, new(absent)) {
			f.until = time.Now().Add(min(again<<min(f.tries, 10), mostAgain))
		}
	}
	close(f.done)
	if s.Changed != nil {
		s.Changed()
	}
}

// inTurn fetches when it may.
func (s *Store) inTurn(ctx context.Context, name string, owner Owner) (Image, error) {
	t, err := s.take(ctx, keyOf(name, owner))
	if err != nil {
		return Image{}, err
	}
	defer s.end(t)
	within, cancel := context.WithTimeout(ctx, s.Limits.Time)
	defer cancel()
	return s.fetch(within, name, owner)
}

// fetch finds the image and unpacks it, if the store does not have it.
func (s *Store) fetch(ctx context.Context, name string, owner Owner) (Image, error) {
	if id, ok := s.known(name, owner); ok {
		return s.open(id)
	}
	src, err := s.find(ctx, name)
	if err != nil {
		return Image{}, err
	}
	defer src.close()
	if src.directory != "" {
		return Image{Root: src.directory}, nil
	}
	id := identity(src.id, owner)
	lock, _ := s.making.LoadOrStore(id, new(sync.Mutex)) // of several names of one image, too
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	if _, err := os.Stat(s.path("tree", id, "config")); errors.Is(err, os.ErrNotExist) {
		err = s.unpack(ctx, src, id, owner)
		if err != nil {
			return Image{}, err
		}
	}
	if src.remote {
		if err := s.remember(name, src.id); err != nil {
			return Image{}, err
		}
	}
	return s.open(id)
}

// identity names a tree: by the digest, and the owner where files are theirs. Trees
// of a former version, whose files all are root's, have other names.
func identity(digest v1.Hash, owner Owner) string {
	id := digest.Algorithm + "-" + digest.Hex + "-ids"
	if owner != (Owner{}) {
		id += fmt.Sprintf("-%d-%d-%d", owner.UID, owner.GID, owner.Base)
	}
	return id
}

// open is an image that the store has, by its ID; os.ErrNotExist: it has not.
func (s *Store) open(id string) (Image, error) {
	image := Image{ID: id, Root: s.path("tree", id, "root")}
	text, err := os.ReadFile(s.path("tree", id, "config"))
	if err != nil {
		return Image{}, err
	}
	now := time.Now()
	if err := os.Chtimes(s.path("tree", id), now, now); err != nil { // it is of use: Collect
		return Image{}, err
	}
	var file v1.ConfigFile
	if err := json.Unmarshal(text, &file); err != nil {
		return Image{}, fmt.Errorf("its configuration: %w", err)
	}
	image.Config = file.Config
	return image, nil
}

// unpack makes the tree of an image. It has its name once it is whole and on
// disk.
func (s *Store) unpack(ctx context.Context, src *source, id string, owner Owner) (err error) {
	dir, err := os.MkdirTemp(s.path("half"), "")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, discard(dir))
		}
	}()
	defer s.unclaim(id)
	if err := s.layers(ctx, src, id, filepath.Join(dir, "root"), owner); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), src.config, 0o400); err != nil {
		return err
	}
	if err := errors.Join(noteSize(dir), syncDir(dir)); err != nil {
		return err
	}
	return os.Rename(dir, s.path("tree", id))
}

// syncDir writes all of the file system to disk that holds a directory.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("write the image to disk: %w", err)
	}
	return nil
}

// platform is what images of several platforms are taken for.
var platform = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}

// fits refuses a configuration that is for another machine or of another form.
func fits(file *v1.ConfigFile, limits Limits) error {
	switch n := len(file.RootFS.DiffIDs); {
	case file.OS != "" && file.OS != platform.OS, file.Architecture != "" && file.Architecture != platform.Architecture:
		return fmt.Errorf("it is for %s/%s, this host is %s", file.OS, file.Architecture, platform)
	case file.RootFS.Type != "layers" || n == 0:
		return errors.New("it has no layers of files")
	case n > limits.Layers:
		return fmt.Errorf("it has %d layers, more than %d", n, limits.Layers)
	}
	return nil
}

// idle is how long an image stays that nothing uses: networks come back.
const idle = time.Hour

// Collect removes the images that nothing uses and nobody got within the last
// hour; used are their IDs.
func (s *Store) Collect(used map[string]bool) error {
	s.room.Lock()
	defer s.room.Unlock()
	s.pinned = used
	s.forgive(time.Now())
	trees, err := os.ReadDir(s.path("tree"))
	if err != nil {
		return err
	}
	var failed error
	for _, tree := range trees {
		info, err := tree.Info()
		if err == nil && used[tree.Name()] {
			now := time.Now()
			failed = errors.Join(failed, gone(os.Chtimes(s.path("tree", tree.Name()), now, now)))
		}
		if err != nil || used[tree.Name()] || time.Since(info.ModTime()) < idle {
			continue
		}
		failed = errors.Join(failed, s.remove(tree.Name()))
	}
	return failed
}

func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// remove takes a tree out of the store at once, and then away.
func (s *Store) remove(id string) error {
	dir, err := os.MkdirTemp(s.path("half"), "")
	if err == nil {
		err = os.Rename(s.path("tree", id), filepath.Join(dir, "old"))
	}
	if err == nil {
		err = discard(dir)
	}
	if err != nil {
		return fmt.Errorf("remove image %s: %w", strings.SplitN(id, "-", 3)[1], err)
	}
	return nil
}
