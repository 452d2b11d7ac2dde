package vnode

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"sublet/datapath/image"
	"sublet/plan"
	"sublet/vnet"
)

// saved is an archive of what a node keeps.
func saved(t *testing.T, p *Part, key string) []byte {
	t.Helper()
	var archive bytes.Buffer
	check(t, p.SaveKept(t.Context(), key, false, &archive))
	return archive.Bytes()
}

// What a node keeps comes to another lease of the name as it was: contents, owners,
// permissions, links, what was taken away; and nothing else of what that had.
func TestSavedFiles(t *testing.T) {
	for _, owner := range tenants() {
		t.Run(fmt.Sprint(owner), func(t *testing.T) {
			p, h := newKeeper(t)
			n, s := node("n0", owner), keeper(7)
			do(t, p, plan.Add, names(), n, s)
			if out, code := run(t, p, n, "sh", "-ec", `cd /srv
echo mine >a; chown 33:44 a; chmod 640 a; ln a b; ln -s /srv/a l; mkfifo pipe
mkdir d; chown 33:44 d; chmod 1770 d; echo "odd" >"d/.wh.name"
truncate -s 100M holes; echo end >>holes
mkdir /etc/own; rm /etc/hostname; rm -rf /media
sleep 1000 & echo $! >pid`); code != 0 {
				t.Fatal(out)
			}
			const look = `cd /srv; cat a l "d/.wh.name"; stat -c %u:%g:%a a d; stat -c %F pipe; stat -c %s holes; tail -c4 holes
test a -ef b && echo linked; test -d /etc/own && echo own; ls -d /etc/hostname /media 2>/dev/null; stat -c %u:%a /usr /etc /root`
			want, _ := run(t, p, n, "sh", "-c", look)
			archive := saved(t, p, n.Key())
			if names := namesIn(t, archive); !slices.ContainsFunc(names, func(name string) bool { return path.Base(name) == "a" }) ||
				slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, filepath.Base(h.Run)) }) {
				t.Errorf("with the run directory of this host %s, or without its files, was saved %q", h.Run, names)
			}
			if out, code := run(t, p, n, "sh", "-c", "kill -0 $(cat /srv/pid)"); code != 0 {
				t.Errorf("what runs in the node ended, or stands still: %s", out)
			}
			has(t, p, names(), n, s)
			s.Serial++
			do(t, p, plan.Set, s)
			if out, code := run(t, p, n, "sh", "-c", "test ! -e /srv/a && echo other >/srv/other"); code != 0 {
				t.Fatal(out)
			}
			check(t, p.BringKept(t.Context(), n.Key(), false, bytes.NewReader(archive)))
			if got, _ := run(t, p, n, "sh", "-c", look); got != want || !strings.Contains(got, "33:44:640\n33:44:1770\nfifo\n104857604\nend\nlinked\nown") {
				t.Errorf("brought:\n%s\nwant:\n%s", got, want)
			}
			if out, code := run(t, p, n, "sh", "-c", "test ! -e /srv/other && test $(du -m /srv/holes | cut -f1) -lt 2"); code != 0 {
				t.Errorf("more is there, or a sparse file is no more: %s", out)
			}
			has(t, p, names(), n, s)
			reboot(t, p, h, n)
			do(t, p, plan.Set, n, s)
			if got, _ := run(t, p, n, "sh", "-c", look); got != want {
				t.Errorf("after a boot:\n%s\nwant:\n%s", got, want)
			}
			do(t, p, plan.Delete, s, n)
			leftNothing(t, p, h)
		})
	}
}

// namesIn lists an archive.
func namesIn(t *testing.T, archive []byte) (names []string) {
	t.Helper()
	unpacked, err := zstd.NewReader(bytes.NewReader(archive))
	check(t, err)
	defer unpacked.Close()
	for from := tar.NewReader(unpacked); ; {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		check(t, err)
		names = append(names, h.Name)
	}
}

// archiveOf makes an archive of entries.
func archiveOf(t *testing.T, about string, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	packed, err := zstd.NewWriter(&out)
	check(t, err)
	w := tar.NewWriter(packed)
	check(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: aboutFile, Size: int64(len(about))}))
	_, err = io.WriteString(w, about)
	check(t, err)
	for _, h := range entries {
		h.Mode = 0o6777
		check(t, w.WriteHeader(&h))
		_, err := io.CopyN(w, zeros{}, h.Size)
		check(t, err)
	}
	check(t, errors.Join(w.Close(), packed.Close()))
	return out.Bytes()
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// Archives are their makers': nothing outside of the node's disk is written, what does
// not fit is refused, and the node goes on with what it had.
func TestHostileArchives(t *testing.T) {
	p, h := newKeeper(t)
	n, s := node("n0", 4242), keeper(7)
	do(t, p, plan.Add, names(), n, s)
	if out, code := run(t, p, n, "sh", "-c", "echo mine >/srv/a"); code != 0 {
		t.Fatal(out)
	}
	whole := saved(t, p, n.Key())
	const about = `{"version":1,"size":67108864}`
	const file, dir, link = tar.TypeReg, tar.TypeDir, tar.TypeSymlink
	outside := filepath.Join(t.TempDir(), "evil")
	var many []tar.Header
	for i := range 5 {
		many = append(many, tar.Header{Typeflag: file, Name: fmt.Sprintf("layers/-/%d", i), Size: 60 << 20})
	}
	for name, archive := range map[string][]byte{
		"empty":               nil,
		"no archive":          []byte("text"),
		"cut off":             whole[:len(whole)/2],
		"damaged":             append(append(bytes.Clone(whole[:40]), 0xff), whole[41:]...),
		"of another version":  archiveOf(t, `{"version":2}`),
		"of a machine":        archiveOf(t, `{"version":1,"machine":true}`),
		"in no layer":         archiveOf(t, about, tar.Header{Typeflag: file, Name: "etc/x"}),
		"above the layers":    archiveOf(t, about, tar.Header{Typeflag: file, Name: "layers/../x"}),
		"a device":            archiveOf(t, about, tar.Header{Typeflag: tar.TypeBlock, Name: "layers/-/x", Devmajor: 7}),
		"a character device":  archiveOf(t, about, tar.Header{Typeflag: tar.TypeChar, Name: "layers/-/x", Devmajor: 1, Devminor: 3}),
		"a link out":          archiveOf(t, about, tar.Header{Typeflag: tar.TypeLink, Name: "layers/-/x", Linkname: "/etc/passwd"}),
		"a link to nothing":   archiveOf(t, about, tar.Header{Typeflag: tar.TypeLink, Name: "layers/-/x", Linkname: "layers/-/../../etc/passwd-none"}),
		"through a link out":  archiveOf(t, about, tar.Header{Typeflag: link, Name: "layers/-/out", Linkname: filepath.Dir(outside)}, tar.Header{Typeflag: file, Name: "layers/-/out/evil"}),
		"a long path":         archiveOf(t, about, tar.Header{Typeflag: file, Name: "layers/-/" + strings.Repeat("x/", 3000) + "y"}),
		"deep directories":    archiveOf(t, about, tar.Header{Typeflag: file, Name: "layers/-/" + strings.Repeat("x/", 300) + "y"}),
		"more than the disk":  archiveOf(t, about, many...),
		"a file in its place": archiveOf(t, about, tar.Header{Typeflag: file, Name: "layers/-"}),
	} {
		if err := p.BringKept(t.Context(), n.Key(), false, bytes.NewReader(archive)); !errors.Is(err, image.ErrArchive) && !errors.Is(err, image.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.BringKept(ended, n.Key(), false, bytes.NewReader(whole)); err == nil {
		t.Error("brought for somebody who has gone")
	}
	if out, _ := run(t, p, n, "cat", "/srv/a"); out != "mine" {
		t.Errorf("the node has lost what it had: %q", out)
	}
	if left, err := os.ReadDir(p.Kept); err != nil || len(left) != 2 { // a link and what it leads to
		t.Errorf("left: %v, %v", left, err)
	}
	// What stays inside is taken, without rights.
	check(t, p.BringKept(t.Context(), n.Key(), false, bytes.NewReader(archiveOf(t, about,
		tar.Header{Typeflag: dir, Name: "layers/-/srv", Uid: 0}, tar.Header{Typeflag: link, Name: "layers/-/srv/out", Linkname: "/"},
		tar.Header{Typeflag: file, Name: "layers/-/srv/out/evil"}, tar.Header{Typeflag: file, Name: "layers/-/../../../" + outside, Size: 1},
		tar.Header{Typeflag: file, Name: "layers/-/srv/suid", Uid: 0}, tar.Header{Typeflag: file, Name: "layers/-/srv/theirs", Uid: 1 << 20}))))
	if _, err := os.Lstat(outside); err == nil {
		t.Error("a file outside was written")
	}
	if out, _ := run(t, p, n, "stat", "-c", "%u %a", "/srv/suid", "/srv/theirs"); out != "0 777\n65534 777" {
		t.Errorf("owners and permissions: %q", out)
	}
	do(t, p, plan.Delete, s, n)
	leftNothing(t, p, h)
}

// One saves or brings at a time; who keeps nothing is not saved; a pause that begins
// while a node is saved holds.
func TestSavingIsAlone(t *testing.T) {
	p, h := newKeeper(t)
	n, s := node("n0", 4242), keeper(7)
	do(t, p, plan.Add, names(), n, s)
	if out, code := run(t, p, n, "touch", "/srv/a"); code != 0 {
		t.Fatal(out)
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- p.SaveKept(t.Context(), n.Key(), false, w) }()
	wait(t, "the node to stand still", func() bool { _, err := os.Stat(p.stillPath(n.Key())); return err == nil })
	has(t, p, names(), n, s) // its tenant has not paused it
	if err := p.SaveKept(t.Context(), n.Key(), false, io.Discard); !errors.Is(err, ErrInUse) {
		t.Errorf("saved twice at a time: %v", err)
	}
	if err := p.BringKept(t.Context(), n.Key(), false, strings.NewReader("")); !errors.Is(err, ErrInUse) {
		t.Errorf("brought meanwhile: %v", err)
	}
	still := plan.Pause{Lease: demo, Node: "n0"}
	do(t, p, plan.Add, still)
	go io.Copy(io.Discard, r)
	check(t, <-done)
	has(t, p, names(), n, s, still)
	do(t, p, plan.Delete, still, s, n)
	leftNothing(t, p, h)
	if err := p.SaveKept(t.Context(), n.Key(), false, io.Discard); !errors.Is(err, ErrNotKept) {
		t.Errorf("saved nothing: %v", err)
	}
}

// A machine's disk is brought with the image that it belongs to, however old that is
// here; one of another image, or that makes QEMU open other files, is refused.
func TestSavedDisk(t *testing.T) {
	p, _ := newKeeper(t)
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip(err)
	}
	offered := t.TempDir()
	base := filepath.Join(offered, "small.raw")
	check(t, os.WriteFile(base, make([]byte, 1<<20), 0o644))
	store, err := image.New(image.Config{Dir: filepath.Join(t.TempDir(), "store"), Offered: offered})
	check(t, err)
	p.Images = store
	n := node("n0", 4242)
	s := plan.Setup{Lease: demo, Node: "n0", Serial: 7, Setup: vnet.Setup{Kind: vnet.KindVM, Image: "small.raw", State: vnet.StateKeep, Disk: 4 << 20}}
	do(t, p, plan.Add, names(), n)
	check(t, p.keepSetup(s)) // no machine is started
	const far = 3 << 20
	written := func(text string, at int64) {
		t.Helper()
		disk, err := store.OpenDisk(s.Image, s.DiskFormat())
		check(t, err)
		defer disk.File.Close()
		layer, err := p.machineLayer(s, disk, 4<<20)
		check(t, err)
		_, err = layer.WriteAt([]byte(text), at)
		check(t, errors.Join(err, layer.Close()))
	}
	written("mine", far)
	archive := saved(t, p, n.Key())
	written("else", far)
	hostile := func() []byte {
		written("\x00\x00\x00\x00\x00\x00\x00\x68\x00\x00\x00\x09", 8) // a backing file
		return saved(t, p, n.Key())
	}()
	check(t, os.Chtimes(base, time.Unix(1, 0), time.Unix(1, 0)))
	check(t, p.dropKept(s.Key()))
	// Nothing is started here: its supervisor would be a machine's.
	bring := func(archive []byte) error {
		err := p.BringKept(t.Context(), n.Key(), false, bytes.NewReader(archive))
		check(t, p.stopPrograms(n.Key()))
		return err
	}
	check(t, bring(archive))
	f, err := os.Open(filepath.Join(p.keptDir(s.Key()), diskFile))
	check(t, err)
	defer f.Close()
	text := make([]byte, 4)
	if _, err := f.ReadAt(text, far); err != nil || string(text) != "mine" {
		t.Errorf("brought %q, %v", text, err)
	}
	if err := bring(hostile); !errors.Is(err, image.ErrArchive) || !strings.Contains(err.Error(), "backing file") {
		t.Errorf("a disk with a backing file: %v", err)
	}
	check(t, os.WriteFile(base, bytes.Repeat([]byte{1}, 1<<20), 0o644))
	if err := bring(archive); !errors.Is(err, image.ErrArchive) || !strings.Contains(err.Error(), "another image") {
		t.Errorf("a disk of another image: %v", err)
	}
	do(t, p, plan.Delete, s, n)
}
