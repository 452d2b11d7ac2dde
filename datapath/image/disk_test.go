package image

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func disks(t *testing.T) *Store {
	t.Helper()
	s, err := New(Config{Dir: t.TempDir(), Offered: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// header is one of qcow2, of a disk of 1 MiB.
func header(change func(h *qcow2)) []byte {
	h := qcow2{Magic: [4]byte{'Q', 'F', 'I', 0xfb}, Version: 3, ClusterBits: 16, Size: 1 << 20}
	change(&h)
	b, err := binary.Append(nil, binary.BigEndian, h)
	if err != nil {
		panic(err)
	}
	return b
}

// An image can make QEMU open no other file, and is what its name says.
func TestDisksThatAreRefused(t *testing.T) {
	s := disks(t)
	none := func(*qcow2) {}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"good.qcow2", header(none), ""},
		{"old.qcow2", header(func(h *qcow2) { h.Version, h.Incompatible = 2, 1<<63 }), ""},
		{"good.raw", make([]byte, 1<<20), ""},
		{"backed.qcow2", header(func(h *qcow2) { h.BackingOffset, h.BackingSize = 200, 11 }), "backing file"},
		{"halfbacked.qcow2", header(func(h *qcow2) { h.BackingSize = 1 }), "backing file"},
		{"outside.qcow2", header(func(h *qcow2) { h.Incompatible = 1 << 2 }), "data in another file"},
		{"future.qcow2", header(func(h *qcow2) { h.Incompatible = 1 << 40 }), "features"},
		{"secret.qcow2", header(func(h *qcow2) { h.CryptMethod = 2 }), "encrypted"},
		{"huge.qcow2", header(func(h *qcow2) { h.Size = 1 << 60 }), "bytes"},
		{"four.qcow2", header(func(h *qcow2) { h.Version = 4 }), "version 4"},
		{"short.qcow2", header(none)[:60], "shorter"},
		{"plain.qcow2", make([]byte, 1<<20), "not in the format qcow2"},
		{"odd.raw", make([]byte, 700), "sectors"},
		{"empty.raw", nil, "sectors"},
	} {
		if err := os.WriteFile(filepath.Join(s.Offered, c.name), c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		disk, err := s.OpenDisk(c.name, strings.TrimPrefix(filepath.Ext(c.name), "."))
		switch {
		case c.want == "" && (err != nil || disk.Size != 1<<20):
			t.Errorf("%s: %v, %v", c.name, disk, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Nothing but files below the directory of the operator's is opened.
func TestDisksOutsideOfTheDirectory(t *testing.T) {
	s := disks(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "x.raw")
	must(os.WriteFile(outside, make([]byte, sector), 0o644))
	must(os.Symlink(outside, filepath.Join(s.Offered, "link.raw")))
	must(os.Mkdir(filepath.Join(s.Offered, "dir.raw"), 0o755))
	if out, err := exec.Command("mkfifo", filepath.Join(s.Offered, "pipe.raw")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"link.raw", "dir.raw", "pipe.raw", "none.raw", "../x.raw"} {
		if _, err := s.OpenDisk(name, "raw"); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	s.Offered = ""
	if _, err := s.OpenDisk("good.raw", "raw"); err == nil || !strings.Contains(err.Error(), "--images") {
		t.Errorf("without a directory: %v", err)
	}
}

// What a machine writes is a disk without a name, in the bounds of its host.
func TestLayers(t *testing.T) {
	if _, err := exec.LookPath("qemu-img"); err != nil {
		t.Skip("qemu-img is not installed: apt-get install qemu-utils")
	}
	s := disks(t)
	f, err := s.NewLayer(1<<20 + 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if size, err := sizeOfQCOW2(f); err != nil || size != 1<<20+sector {
		t.Errorf("a layer of %d bytes, %v", size, err)
	}
	if files, _ := filepath.Glob(filepath.Join(s.Dir, "*")); len(files) != 3 { // half, tree, name
		t.Errorf("it left %v", files)
	}
	if _, err := s.NewLayer(1 << 49); err == nil || !strings.Contains(err.Error(), "room") {
		t.Errorf("a disk of 512 TiB: %v", err)
	}
}
