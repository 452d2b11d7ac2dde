package vnode

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"sublet/datapath/image"
	"sublet/plan"
	"sublet/vnet"
)

// What a node keeps leaves its host, and comes to one, as an archive: tar (pax,
// POSIX.1-2001), compressed by zstd (RFC 8878).
//
//	kept.json          saved: what it is of
//	layers/PLACE/...   what overlayfs has of a node, for each place where one is mounted
//	disk.qcow2         what a machine wrote to its disk, above its image
//	memory             of a machine that goes to another host and goes on there
const (
	aboutFile = "kept.json"
	savedDisk = "disk.qcow2"
	savedForm = 1
	mostAbout = 64 << 10
)

// Saved says what an archive of kept files is of.
type Saved struct {
	Version int    `json:"version"`
	Image   string `json:"image,omitempty"`
	Size    int64  `json:"size"` // of the disk, in bytes
	Machine bool   `json:"machine,omitempty"`
	// Base is the digest of a machine's image (SHA-256), of which the disk has the
	// differences only.
	Base string `json:"base,omitempty"`
}

// Errors of saving and bringing back, beside image.ErrArchive and image.ErrTooLarge.
var (
	ErrNotKept = errors.New("the node keeps nothing: it has no state: keep, or is not here")
	ErrInUse   = errors.New("what the node keeps is being saved or brought already")
)

// errCarried says why nothing is run in a node.
var errCarried = errors.New("it is stopped while what it keeps is taken to another host: try again in a moment")

// onItsWay refuses what is for a node that is carried, or for one that is not.
func onItsWay(s plan.Setup, carried bool) error {
	switch {
	case !s.Keeps():
		return ErrNotKept
	case s.Carried == carried:
		return nil
	case carried:
		return fmt.Errorf("%w: it is not to be taken to another host, or not any more", ErrInUse)
	}
	return fmt.Errorf("%w: %w", ErrInUse, errCarried)
}

// limitsOf bound the files of a disk: some may be sparse.
func limitsOf(size int64) image.UpperLimits {
	const sparse, entries = 4, 1 << 19
	return image.UpperLimits{Bytes: sparse * size, Entries: entries}
}

// mostDiskFile bounds the file of a machine's disk: its tables take little.
func mostDiskFile(size int64) int64 { return size + size/8 + 16<<20 }

// alone is for what is done to kept files by one at a time; end says it is done.
func (p *Part) alone(key string) (end func(), err error) {
	if _, taken := p.moving.LoadOrStore(key, true); taken {
		return nil, ErrInUse
	}
	return func() { p.moving.Delete(key) }, nil
}

// SaveKept writes what a node keeps to an archive. What runs in it stands still
// meanwhile, so the archive has one instant. Carried: it is stopped, and goes to another
// host.
func (p *Part) SaveKept(ctx context.Context, key string, carried bool, w io.Writer) error {
	end, err := p.alone(key)
	if err != nil {
		return err
	}
	defer end()
	s, err := p.setupOf(key)
	n, noted := p.noteOf(key)
	if err == nil {
		err = onItsWay(s, carried)
	}
	switch {
	case err != nil:
		return err
	case noted != nil && !errors.Is(noted, fs.ErrNotExist):
		return noted
	}
	goOn, err := p.hold(key)
	if err != nil {
		return fmt.Errorf("have node %s stand still: %w", key, err)
	}
	defer goOn()
	packed, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	to := tar.NewWriter(packed)
	if noted == nil {
		err = p.pack(ctx, to, s, n)
	} else {
		err = putAbout(to, Saved{Version: savedForm, Image: s.Image, Size: diskSize(s), Machine: s.Machine()}) // nothing was written yet
	}
	if err != nil {
		return fmt.Errorf("save what node %s keeps: %w", key, err)
	}
	return errors.Join(to.Close(), packed.Close())
}

// diskSize is that of what a node keeps, unless its image says it.
func diskSize(s plan.Setup) int64 {
	if s.Disk != 0 || s.Machine() {
		return int64(s.Disk)
	}
	return int64(vnet.KeptDisk)
}

func putAbout(to *tar.Writer, about Saved) error {
	text, err := json.Marshal(about)
	if err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: aboutFile, Mode: 0o644, Size: int64(len(text)), Format: tar.FormatPAX}
	if err := to.WriteHeader(h); err != nil {
		return err
	}
	_, err = to.Write(text)
	return err
}

func (p *Part) pack(ctx context.Context, to *tar.Writer, s plan.Setup, n note) error {
	if !n.Machine {
		about := Saved{Version: savedForm, Image: n.Image, Size: n.Size}
		return errors.Join(putAbout(to, about), p.packLayers(ctx, to, s.Key(), n))
	}
	about, err := p.savedMachine(ctx, s, n)
	if err != nil {
		return err
	}
	if err := errors.Join(putAbout(to, about), p.packDisk(ctx, to, s.Key(), n)); err != nil || !s.Carried {
		return err
	}
	return p.packMemory(ctx, to, s.Key())
}

// savedMachine says what a machine's disk is of.
func (p *Part) savedMachine(ctx context.Context, s plan.Setup, n note) (about Saved, err error) {
	if p.Images == nil {
		return about, errors.New("this host has no images")
	}
	disk, err := p.Images.OpenDisk(s.Image, s.DiskFormat())
	if err != nil {
		return about, err
	}
	defer disk.File.Close()
	if is, err := below(disk); err != nil || is != n.Below {
		return about, errors.Join(err, fmt.Errorf("the image %s has changed since its disk was made", n.Image))
	}
	about = Saved{Version: savedForm, Image: n.Image, Size: n.Size, Machine: true}
	about.Base, err = p.digests.of(ctx, disk.File)
	return about, err
}

func (p *Part) packDisk(ctx context.Context, to *tar.Writer, key string, n note) error {
	f, err := os.Open(filepath.Join(p.keptDir(key), diskFile))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > mostDiskFile(n.Size) {
		return fmt.Errorf("%w: its disk has %d bytes", image.ErrTooLarge, info.Size())
	}
	if err := to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: savedDisk, Mode: 0o600, Size: info.Size(), Format: tar.FormatPAX}); err != nil {
		return err
	}
	return image.Copy(ctx, to, f, info.Size())
}

// packLayers reads the file system of what a node keeps, where it is mounted.
func (p *Part) packLayers(ctx context.Context, to *tar.Writer, key string, n note) error {
	if err := p.showKept(key); err != nil {
		return err
	}
	dir := filepath.Join(p.keptPath(key), layersDir)
	places, err := os.ReadDir(dir)
	if err != nil {
		return gone(err)
	}
	left := limitsOf(n.Size)
	for _, place := range places {
		if err := packPlace(ctx, to, dir, place.Name(), n.Owner, left, p.host.Run); err != nil {
			return err
		}
	}
	return nil
}

func packPlace(ctx context.Context, to *tar.Writer, dir, place string, owner image.Owner, left image.UpperLimits, run string) error {
	upper, err := os.OpenFile(filepath.Join(dir, place, "upper"), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer upper.Close()
	return image.PackUpper(ctx, to, path.Join(layersDir, place), upper, owner, left, mountedIn(place, run))
}

// mountedIn is where the run directory is in a place, which each host has elsewhere; "":
// not in this one.
func mountedIn(place, run string) string {
	for _, at := range append(above(run), "/") {
		if inOneWord(at) == place {
			return strings.TrimPrefix(strings.TrimPrefix(run, at), "/")
		}
	}
	return ""
}

// showKept mounts what a node keeps, if it is not.
func (p *Part) showKept(key string) error {
	lock := p.locks.of(key)
	lock.Lock()
	defer lock.Unlock()
	if at := p.keptPath(key); !isMount(at) {
		return p.mountKept(key, at)
	}
	return nil
}

// standing is a node that stands still for a while, for what this program does to it.
type standing struct{ asked atomic.Bool } // its tenant has paused it, too

// hold has a node stand still until goOn. A program that is killed in between leaves
// the note of a node that stands still, so the next one lets it go on.
func (p *Part) hold(key string) (goOn func(), err error) {
	if _, err := os.Lstat(p.stillPath(key)); err == nil {
		return func() {}, nil // paused
	}
	id, node, _ := plan.ParseNamespace(key)
	still := plan.Pause{Lease: id, Node: node}
	p.standing.Store(key, &standing{}) // before anybody sees it
	goOn = func() {
		if is, _ := p.standing.LoadAndDelete(key); !is.(*standing).asked.Load() {
			_ = p.thaw(still) // what failed, the next audit does
		}
	}
	if err := p.standStill(still); err != nil {
		goOn()
		return nil, err
	}
	return goOn, nil
}

// BringKept replaces what a node keeps by what an archive has, and starts it anew.
// What it had stays if the archive is not whole, or does not fit. Carried: it comes from
// another host, and is started later.
func (p *Part) BringKept(ctx context.Context, key string, carried bool, r io.Reader) error {
	end, err := p.alone(key)
	if err != nil {
		return err
	}
	defer end()
	s, err := p.setupOf(key)
	if err == nil {
		err = onItsWay(s, carried)
	}
	if err != nil {
		return err
	}
	unpacked, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return err
	}
	defer unpacked.Close()
	from := tar.NewReader(unpacked)
	about, err := readAbout(from)
	if err != nil {
		return err
	}
	now, err := p.newNote(ctx, s, about)
	if err != nil {
		return err
	}
	dir, err := p.fillBrought(ctx, s, now, from)
	if err == nil {
		err = p.exchange(s, dir)
	}
	if err != nil && dir != "" {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	p.brought.Delete(filepath.Base(dir))
	if err == nil {
		p.awaitPrograms(s)
	}
	return err
}

// readAbout reads what an archive begins with.
func readAbout(from *tar.Reader) (about Saved, err error) {
	h, err := from.Next()
	if err != nil {
		return about, fmt.Errorf("%w: it is no archive of kept files: %w", image.ErrArchive, err)
	}
	text, err := io.ReadAll(io.LimitReader(from, mostAbout))
	if err == nil && h.Name != aboutFile {
		err = errors.New("it does not begin with " + aboutFile)
	}
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(text)).Decode(&about)
	}
	if err == nil && about.Version != savedForm {
		err = fmt.Errorf("it is of version %d, this is for version %d", about.Version, savedForm)
	}
	if err != nil {
		return about, fmt.Errorf("%w: %w", image.ErrArchive, err)
	}
	return about, nil
}

// newNote says whose files are that an archive brings, if it fits the node.
func (p *Part) newNote(ctx context.Context, s plan.Setup, about Saved) (now note, err error) {
	if about.Machine != s.Machine() {
		return now, fmt.Errorf("%w: the node and what was saved are not both machines", image.ErrArchive)
	}
	now = note{Serial: s.Serial, Image: s.Image, Size: diskSize(s), Machine: s.Machine()}
	if !s.Machine() {
		uid, err := p.host.Owner(s.Key())
		if err != nil {
			return now, fmt.Errorf("the node is not here: %w", err)
		}
		now.Owner, err = rootOwner(p.host, uid)
		return now, err
	}
	if p.Images == nil {
		return now, errors.New("this host has no images")
	}
	disk, err := p.Images.OpenDisk(s.Image, s.DiskFormat())
	if err != nil {
		return now, err
	}
	defer disk.File.Close()
	if now.Size == 0 {
		now.Size = disk.Size
	}
	if now.Below, err = below(disk); err != nil || about.Base == "" {
		return now, err
	}
	base, err := p.digests.of(ctx, disk.File)
	if err == nil && base != about.Base {
		err = fmt.Errorf("%w: its disk belongs to another image than %s is here", image.ErrArchive, s.Image)
	}
	return now, err
}

// fillBrought makes a directory of kept files that no node has yet. It goes with the
// next audit of another agent, if this one is killed.
func (p *Part) fillBrought(ctx context.Context, s plan.Setup, now note, from *tar.Reader) (dir string, err error) {
	if dir, err = p.hiddenKept(); err != nil {
		return "", err
	}
	fill := func(f *os.File) error { return formatFiles(f, now.Size) }
	if now.Machine {
		fill = func(f *os.File) error { return image.FormatLayer(f, now.Size) }
	}
	if err := image.TakeRoom(p.Kept, now.Size, func() error { return fillKept(dir, now, fill) }); err != nil {
		return dir, fmt.Errorf("make a disk for what it keeps: %w", err)
	}
	if now.Machine {
		return dir, p.bringMachine(ctx, dir, s, now, from)
	}
	return dir, bringLayers(ctx, filepath.Join(dir, diskFile), s, now, from)
}

// bringMachine fills a directory with what a machine kept, and what it goes on from if it
// comes from another host.
func (p *Part) bringMachine(ctx context.Context, dir string, s plan.Setup, now note, from *tar.Reader) error {
	err := bringDisk(ctx, filepath.Join(dir, diskFile), now, from)
	if err == nil && s.Carried {
		return p.bringMemory(ctx, s.Key(), dir, from)
	}
	if err == nil {
		if _, next := from.Next(); !errors.Is(next, io.EOF) {
			err = fmt.Errorf("%w: more follows its disk", image.ErrArchive)
		}
	}
	return err
}

// bringDisk writes a machine's disk; an archive without one leaves it empty.
func bringDisk(ctx context.Context, file string, now note, from *tar.Reader) error {
	h, err := from.Next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", image.ErrArchive, err)
	case h.Name != savedDisk || h.Typeflag != tar.TypeReg || h.Size > mostDiskFile(now.Size):
		return fmt.Errorf("%w: %.200q with %d bytes is not the disk of this machine", image.ErrArchive, h.Name, h.Size)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(0); err != nil {
		return err
	}
	if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, now.Size); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("take room for a machine's disk: %w", err)
	}
	to := &image.Holes{File: f}
	if err := image.Copy(ctx, to, from, h.Size); err != nil {
		return fmt.Errorf("%w: %w", image.ErrArchive, err)
	}
	if err := to.End(); err != nil {
		return err
	}
	if err := image.CheckLayer(f, now.Size); err != nil {
		return fmt.Errorf("%w: its disk: %w", image.ErrArchive, err)
	}
	return f.Sync()
}

// bringLayers fills a file system that is mounted nowhere.
func bringLayers(ctx context.Context, file string, s plan.Setup, now note, from *tar.Reader) error {
	tree, err := mountNowhere(file)
	if err != nil {
		return err
	}
	defer tree.Close()
	at := fmt.Sprintf("/proc/self/fd/%d", tree.Fd())
	if err := os.Chmod(at, 0o711); err != nil {
		return err
	}
	left := limitsOf(now.Size)
	l, err := newLayersIn(ctx, filepath.Join(at, layersDir), s, now.Owner, &left)
	if err != nil {
		return err
	}
	defer l.close()
	for {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = l.add(h, from)
		} else {
			err = fmt.Errorf("%w: %w", image.ErrArchive, err)
		}
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return fmt.Errorf("%w: what was saved does not fit on its disk of %s", image.ErrTooLarge, vnet.Bytes(now.Size))
		}
		if err != nil {
			return err
		}
	}
	return unix.Syncfs(int(tree.Fd()))
}
