package socket

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A socket that was taken away comes back with its mode, and goes with its
// listener; one that another serves meanwhile is left to them.
func TestSocketComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !Answers(path); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not made again")
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("made again as %v, %v", info.Mode(), err)
	}
	os.Remove(path)
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	l.Close()
	if !Answers(path) {
		t.Error("the socket of another was taken away")
	}
}

// A socket that was only out of sight is served as soon as it is back, although
// there was another in its place.
func TestHiddenSocketIsServedStill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	path, away := filepath.Join(dir, "s"), dir+".away"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(os.Rename(dir, away), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !Answers(path); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is made in its place")
		}
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(away, dir)); err != nil {
		t.Fatal(err)
	}
	if !Answers(path) {
		t.Error("the first socket is not served any more")
	}
}
