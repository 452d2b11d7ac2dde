package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What a node has written above files that it does not change is a directory of
// overlayfs's (upper). As a tar archive it is what that directory has: files,
// directories, links, pipes; for what the node took away a character device 0:0, and
// a record at a directory that hides what is below (filesystems/overlayfs.rst,
// whiteouts and opaque directories). Owners are those of the node.
const (
	opaqueAttribute = "trusted.overlay.opaque"
	opaqueRecord    = "SCHILY.xattr." + opaqueAttribute
	// hostRecord is at what does not belong to a user of the node: directories of
	// the host, in a node without an image.
	hostRecord = "SUBLET.host"
)

// UpperLimits of what a node has written, beside its disk.
type UpperLimits struct {
	Bytes   int64 // of its files, which is more than the disk has if they are sparse
	Entries int
}

const (
	mostPath   = 4096     // bytes of a path
	mostLevels = 256      // of directories: each is an open file
	mostLinked = 64 << 20 // bytes of names of files that have several, which are remembered
)

// ErrArchive says that an archive is damaged, or has what is not let in.
var ErrArchive = errors.New("the archive cannot be taken")

// Inside is who a user and a group of the host are in a node; false: they are not of
// it.
func (o Owner) Inside(uid, gid uint32) (int, int, bool) {
	u, ours := o.inside(uid, o.UID)
	g, too := o.inside(gid, o.GID)
	return u, g, ours && too
}

func (o Owner) inside(id, root uint32) (int, bool) {
	switch {
	case o == (Owner{}) && id <= MostID:
		return int(id), true
	case o != (Owner{}) && id == root:
		return 0, true
	case o.Base != 0 && id > o.Base && id <= o.Base+MostID:
		return int(id - o.Base), true
	}
	return nobody, false
}

// PackUpper writes what is in a directory of overlayfs's to an archive, below a name.
// Nobody changes it meanwhile. Sockets are left out: they are of processes. So is a path in
// it on which the host mounts something of its own, as far as nothing else is there.
func PackUpper(ctx context.Context, to *tar.Writer, name string, upper *os.File, owner Owner, most UpperLimits, mounted string) error {
	p := &packer{ctx: ctx, to: to, owner: owner, left: most, linked: make(map[uint64]string)}
	if mounted != "" {
		p.mounted = path.Join(name, mounted)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(upper.Fd()), &st); err != nil {
		return err
	}
	return p.directory(upper, name, &st, 0)
}

type packer struct {
	ctx    context.Context
	to     *tar.Writer
	owner  Owner
	left   UpperLimits
	linked map[uint64]string // the first name of a file that has several
	names  int               // bytes of those

	mounted string // name of the directory on which the host mounts something; "": none
}

// take counts an entry and its bytes.
func (p *packer) take(bytes int64) error {
	p.left.Entries--
	p.left.Bytes -= bytes
	switch {
	case p.left.Entries < 0:
		return fmt.Errorf("%w: there are too many files", ErrTooLarge)
	case p.left.Bytes < 0:
		return fmt.Errorf("%w: its files are much longer than its disk", ErrTooLarge)
	}
	return p.ctx.Err()
}

// header is what an entry says of a file.
func (p *packer) header(kind byte, name string, st *unix.Stat_t) *tar.Header {
	h := &tar.Header{Typeflag: kind, Name: name, Mode: int64(st.Mode & 0o1777), Format: tar.FormatPAX, ModTime: time.Unix(st.Mtim.Sec, 0)}
	ours := false
	if h.Uid, h.Gid, ours = p.owner.Inside(st.Uid, st.Gid); !ours {
		h.PAXRecords = map[string]string{hostRecord: "1"}
	}
	return h
}

func (p *packer) directory(dir *os.File, name string, st *unix.Stat_t, level int) error {
	if level > mostLevels || len(name) > mostPath {
		return fmt.Errorf("%w: directories are nested more than %d deep, or have paths of more than %d bytes", ErrTooLarge, mostLevels, mostPath)
	}
	h := p.header(tar.TypeDir, name+"/", st)
	if value := make([]byte, 1); isOpaque(dir, value) {
		if h.PAXRecords == nil {
			h.PAXRecords = make(map[string]string)
		}
		h.PAXRecords[opaqueRecord] = "y"
	}
	if err := p.take(0); err != nil {
		return err
	}
	if err := p.to.WriteHeader(h); err != nil {
		return err
	}
	const some = 512 // names at a time, however many there are
	for {
		names, err := dir.Readdirnames(some)
		for _, base := range names {
			if err := p.entry(dir, base, path.Join(name, base), level); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func isOpaque(dir *os.File, value []byte) bool {
	n, err := unix.Fgetxattr(int(dir.Fd()), opaqueAttribute, value)
	return err == nil && n == 1 && value[0] == 'y'
}

func (p *packer) entry(dir *os.File, base, name string, level int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if len(name) > mostPath {
		return fmt.Errorf("%w: it has paths of more than %d bytes", ErrTooLarge, mostPath)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		below, err := openDir(int(dir.Fd()), base)
		if err != nil {
			return err
		}
		defer below.Close()
		if hosts, err := p.onlyLeads(below, name); err != nil || hosts && level > 0 {
			return err
		}
		return p.directory(below, name, &st, level+1)
	case unix.S_IFLNK:
		return p.symlink(dir, base, name, &st)
	case unix.S_IFREG:
		return p.file(dir, base, name, &st)
	case unix.S_IFIFO:
		return p.bare(p.header(tar.TypeFifo, name, &st))
	case unix.S_IFCHR:
		if st.Rdev == 0 {
			return p.bare(p.header(tar.TypeChar, name, &st))
		}
	}
	return nil
}

// onlyLeads says that a directory is for what the host mounts, and holds nothing else.
func (p *packer) onlyLeads(dir *os.File, name string) (bool, error) {
	if name != p.mounted && !strings.HasPrefix(p.mounted, name+"/") {
		return false, nil
	}
	names, err := dir.Readdirnames(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	if name == p.mounted {
		return len(names) == 0, nil
	}
	if len(names) != 1 || !strings.HasPrefix(p.mounted+"/", path.Join(name, names[0])+"/") {
		return false, nil
	}
	below, err := openDir(int(dir.Fd()), names[0])
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer below.Close()
	return p.onlyLeads(below, path.Join(name, names[0]))
}

// bare writes an entry without content.
func (p *packer) bare(h *tar.Header) error {
	if err := p.take(0); err != nil {
		return err
	}
	return p.to.WriteHeader(h)
}

func (p *packer) symlink(dir *os.File, base, name string, st *unix.Stat_t) error {
	to := make([]byte, mostPath+1)
	n, err := unix.Readlinkat(int(dir.Fd()), base, to)
	if err != nil {
		return err
	}
	h := p.header(tar.TypeSymlink, name, st)
	h.Linkname = string(to[:n])
	return p.bare(h)
}

func (p *packer) file(dir *os.File, base, name string, st *unix.Stat_t) error {
	if first, ok := p.linked[st.Ino]; ok {
		h := p.header(tar.TypeLink, name, st)
		h.Linkname = first
		return p.bare(h)
	}
	if st.Nlink > 1 {
		if p.names += len(name); p.names > mostLinked {
			return fmt.Errorf("%w: too many of its files have several names", ErrTooLarge)
		}
		p.linked[st.Ino] = name
	}
	fd, err := unix.Openat(int(dir.Fd()), base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOATIME|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	h := p.header(tar.TypeReg, name, st)
	h.Size = st.Size
	if err := p.take(st.Size); err != nil {
		return err
	}
	if err := p.to.WriteHeader(h); err != nil {
		return err
	}
	return Copy(p.ctx, p.to, f, st.Size)
}

// Copy copies as many bytes, unless ctx ends before.
func Copy(ctx context.Context, to io.Writer, from io.Reader, size int64) error {
	for size > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(to, from, min(size, 4<<20))
		if size -= n; errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Upper is a directory of overlayfs's that is being filled from an archive, whose
// maker is hostile.
type Upper struct {
	tree *tree
	ctx  context.Context
	left *UpperLimits // shared by all of a node
}

// OpenUpper opens a directory, which nobody else changes.
func OpenUpper(ctx context.Context, dir string, owner Owner, left *UpperLimits) (*Upper, error) {
	t, err := treeAt(dir, owner)
	if err != nil {
		return nil, err
	}
	t.own, t.holes = make(map[uint64]bool), true
	return &Upper{t, ctx, left}, nil
}

// Close lets go of it.
func (u *Upper) Close() { u.tree.close() }

// Add does what one entry says. Names are looked up with the directory as root.
func (u *Upper) Add(h *tar.Header, content io.Reader) error {
	if u.left.Entries--; u.left.Entries < 0 {
		return fmt.Errorf("%w: it has too many files", ErrArchive)
	}
	if len(h.Name) > mostPath+1 || len(h.Linkname) > mostPath {
		return fmt.Errorf("%w: it has paths of more than %d bytes", ErrArchive, mostPath)
	}
	if strings.Count(path.Clean("/"+h.Name), "/") > mostLevels+1 { // a file in the deepest directory
		return fmt.Errorf("%w: its directories are nested more than %d deep", ErrArchive, mostLevels)
	}
	err := u.add(h, u.bounded(content))
	for _, its := range []error{unix.ENOENT, unix.ENOTDIR, unix.EISDIR, unix.EEXIST, unix.ELOOP, unix.ENAMETOOLONG, unix.EMLINK, unix.EPERM, unix.EINVAL, io.ErrUnexpectedEOF} {
		if errors.Is(err, its) && !errors.Is(err, ErrArchive) {
			err = fmt.Errorf("%w: %w", ErrArchive, err)
		}
	}
	if err != nil {
		return fmt.Errorf("entry %.200q: %w", h.Name, err)
	}
	return u.ctx.Err()
}

func (u *Upper) add(h *tar.Header, content io.Reader) error {
	p, err := u.tree.find(h.Name, true)
	if errors.Is(err, errRoot) {
		if h.Typeflag != tar.TypeDir {
			return fmt.Errorf("%w: the root is no directory", ErrArchive)
		}
		return u.describe(u.tree.root, h)
	}
	if err != nil {
		return err
	}
	defer p.close()
	if err := u.admits(h); err != nil {
		return err
	}
	if err := u.tree.replace(p, h); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeChar:
		return unix.Mknodat(p.dir, p.base, unix.S_IFCHR, 0)
	case tar.TypeFifo:
		if err := unix.Mkfifoat(p.dir, p.base, uint32(h.Mode)&0o777); err != nil {
			return err
		}
		uid, gid := u.tree.owned(h)
		return unix.Fchownat(p.dir, p.base, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	case tar.TypeDir:
		if err := u.tree.write(p, h, content); err != nil {
			return err
		}
		dir, err := openDir(p.dir, p.base)
		if err != nil {
			return err
		}
		defer dir.Close()
		return u.describe(int(dir.Fd()), h)
	}
	return u.tree.write(p, h, content)
}

// admits refuses what no node can have written.
func (u *Upper) admits(h *tar.Header) error {
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink, tar.TypeFifo:
		return nil
	case tar.TypeChar:
		if h.Devmajor == 0 && h.Devminor == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: it is no file, directory, link or pipe", ErrArchive)
}

// describe gives a directory what its entry says beside owner and permissions: that
// it hides what is below, or belongs to the host.
func (u *Upper) describe(dir int, h *tar.Header) error {
	at := fmt.Sprintf("/proc/self/fd/%d", dir) // which may be O_PATH
	uid, gid := u.tree.owned(h)
	if h.PAXRecords[hostRecord] != "" {
		uid, gid = 0, 0
	}
	if err := errors.Join(os.Chown(at, uid, gid), os.Chmod(at, fs.FileMode(h.Mode&0o777)|sticky(h.Mode))); err != nil {
		return err
	}
	if h.PAXRecords[opaqueRecord] == "" {
		return nil
	}
	return unix.Setxattr(at, opaqueAttribute, []byte("y"), 0)
}

func sticky(mode int64) fs.FileMode {
	if mode&0o1000 != 0 {
		return fs.ModeSticky
	}
	return 0
}

// bounded reads what is left for files.
func (u *Upper) bounded(content io.Reader) io.Reader {
	return readFunc(func(b []byte) (int, error) {
		if err := u.ctx.Err(); err != nil {
			return 0, err
		}
		n, err := content.Read(b)
		if u.left.Bytes -= int64(n); u.left.Bytes < 0 {
			return 0, fmt.Errorf("%w: its files are much longer than its disk", ErrArchive)
		}
		return n, err
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// Holes writes a file and leaves out what is zero: it stays sparse. End sets the
// file's length.
type Holes struct {
	File *os.File
	at   int64
}

// Write leaves out zeros.
func (w *Holes) Write(b []byte) (n int, err error) {
	const block = 4 << 10
	for len(b) > 0 {
		one := b[:min(len(b), block-int(w.at%block))]
		if !allZero(one) {
			if _, err := w.File.WriteAt(one, w.at); err != nil {
				return n, err
			}
		}
		b, n, w.at = b[len(one):], n+len(one), w.at+int64(len(one))
	}
	return n, nil
}

// End sets the length of the file.
func (w *Holes) End() error { return w.File.Truncate(w.at) }

func allZero(b []byte) bool {
	for _, one := range b {
		if one != 0 {
			return false
		}
	}
	return true
}
