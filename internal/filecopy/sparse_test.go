package filecopy

import (
	"archive/tar"
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// taken is how many bytes of disk a file takes.
func taken(t *testing.T, path string) int64 {
	t.Helper()
	var st syscall.Stat_t
	check(t, syscall.Stat(path, &st))
	return st.Blocks * 512
}

// Holes stay holes, wherever they lie, and take no room of the stream either; all
// else is as it was. Files are made at random.
func TestHolesStayHoles(t *testing.T) {
	const block = 64 << 10
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		dir := t.TempDir()
		f, err := os.Create(dir + "/a")
		check(t, err)
		blocks := int64(random.IntN(20))
		for range random.IntN(5) {
			_, err := f.WriteAt(bytes.Repeat([]byte{byte(1 + random.IntN(255))}, block), block*random.Int64N(20))
			check(t, err)
		}
		check(t, f.Truncate(block*blocks+random.Int64N(block)))
		check(t, f.Close())
		var stream bytes.Buffer
		check(t, Pack(&stream, dir+"/a"))
		check(t, os.WriteFile(dir+"/b", bytes.Repeat([]byte("x"), 30*block), 0o600)) // which is replaced
		check(t, Unpack(bytes.NewReader(stream.Bytes()), dir+"/b", ""))
		want, err := os.ReadFile(dir + "/a")
		check(t, err)
		if got, err := os.ReadFile(dir + "/b"); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("round %d: %d bytes became %d other ones, %v", round, len(want), len(got), err)
		}
		if is, was := taken(t, dir+"/b"), taken(t, dir+"/a"); is > was {
			t.Errorf("round %d: %d bytes of disk became %d", round, was, is)
		}
		if int64(stream.Len()) > taken(t, dir+"/a")+8192 {
			t.Errorf("round %d: %d bytes were sent of %d", round, stream.Len(), taken(t, dir+"/a"))
		}
	}
}

// A file of a terabyte without data is copied at once.
func TestTerabyteOfNothing(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(dir+"/a", []byte("begin"), 0o600))
	check(t, os.Truncate(dir+"/a", 1<<40))
	var stream bytes.Buffer
	check(t, Pack(&stream, dir+"/a"))
	check(t, Unpack(&stream, dir+"/b", ""))
	if info, err := os.Stat(dir + "/b"); err != nil || info.Size() != 1<<40 || taken(t, dir+"/b") > 1<<20 {
		t.Errorf("%v, %v", info, err)
	}
}

// What there is no room for is refused before anything is written.
func TestMoreThanThereIsRoom(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(dir+"/old", []byte("text"), 0o600))
	for _, to := range []string{"old", "new"} {
		var stream bytes.Buffer
		check(t, tar.NewWriter(&stream).WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Mode: 0o600, Size: 1 << 50, Format: tar.FormatPAX}))
		if err := Unpack(&stream, filepath.Join(dir, to), ""); err == nil || !strings.Contains(err.Error(), "are free there") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if text, err := os.ReadFile(dir + "/old"); string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(dir + "/new"); !os.IsNotExist(err) {
		t.Errorf("something is left: %v", err)
	}
}

// Maps of holes that do not fit what follows are refused.
func TestWrongHoles(t *testing.T) {
	for _, c := range [][2]string{
		{"-1", ""}, {"x", "0 4"}, {"8", "0 2"}, {"8", "0 2 1 2"}, {"8", "6 4"}, {"8", "0 4 5"}, {"8", "-4 4"}, {"8", "0 9223372036854775807"}, {"8", "9223372036854775807 4"},
		{"8", strings.Repeat("0 1 ", mostPieces+1)},
	} {
		var stream bytes.Buffer
		w := tar.NewWriter(&stream)
		check(t, w.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 4, Format: tar.FormatPAX, PAXRecords: map[string]string{recordSize: c[0], recordData: c[1]}}))
		_, err := w.Write([]byte("data"))
		check(t, err)
		check(t, w.Close())
		if err := Unpack(&stream, t.TempDir()+"/a", ""); err == nil || !strings.Contains(err.Error(), "holes") {
			t.Errorf("%.40q: %v", c, err)
		}
	}
}
