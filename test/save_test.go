package test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const keeping = `network: vault
nodes:
  - {name: db, state: keep, disk: 64MiB}
  - {name: web}
links:
  - {name: orders, ends: [web, db], min: 1Mbit, max: 10Mbit}
`

// What a node keeps is saved with its network, comes back with it, under another name
// too, and is taken over by a clone; a save that fails leaves no file, and files that
// cannot be brought leave no network:
//
//	web ---- db: files of several owners on a disk of its own
func TestSavedNetworks(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, "demo")
	dir := t.TempDir()
	request, out := filepath.Join(dir, "vault.yaml"), filepath.Join(dir, "vault.tar.zst")
	if err := os.WriteFile(request, []byte(keeping), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("up", request)
	s.must("exec", "vault/db", "--", "sh", "-ec", "head -c 1000000 /dev/urandom >/srv/r; echo one >/srv/a; chown 33:44 /srv/a; chmod 640 /srv/a; ln -s a /srv/l; rm /etc/hostname")
	s.must("save", "vault", out)
	const look = "cat /srv/l; stat -c %u:%g:%a /srv/a; ls /etc/hostname 2>/dev/null || echo gone"
	has := func(network, want string) {
		t.Helper()
		if got := s.sublet("exec", network+"/db", "--", "sh", "-c", look).out; got != want {
			t.Errorf("%s has %q, want %q", network, got, want)
		}
	}
	const one, two = "one\n33:44:640\ngone\n", "two\n33:44:640\ngone\n"
	s.must("exec", "vault/db", "--", "sh", "-c", "echo two >/srv/a")
	s.must("clone", "vault", "twin")
	s.must("up", "--from", out, "--name", "back")
	has("vault", two)
	has("twin", two)
	has("back", one)
	s.saysWhatFailed(dir)
	s.must("clone", "vault", "bare", "--without-files")
	has("bare", "/etc/hostname\n")
	if r := s.sublet("up", "--from", out); r.code != 5 || !strings.Contains(r.err, "apply") {
		t.Errorf("beside itself: exit code %d, %s", r.code, r.err)
	}
	has("vault", two)

	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{"cut": text[:len(text)-40], "empty": nil, "other": []byte("network: x\n")} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := s.sublet("up", "--from", file, "--name", name); r.code != 2 || strings.Count(r.err, "\n") != 1 || strings.Contains(r.out, "running") {
			t.Errorf("%s: exit code %d, %s%s", name, r.code, r.out, r.err)
		}
		if r := s.sublet("exec", name+"/db", "--", "true"); r.code == 0 {
			t.Errorf("%s: its network is there", name)
		}
	}
	// What comes by a pipe is seen to be cut when the network is there.
	piped := exec.CommandContext(t.Context(), program, "--run", s.run, "up", "--from", "-", "--name", "piped")
	piped.Stdin = bytes.NewReader(text[:len(text)-40])
	if r := runCommand(piped); r.code != 1 || !strings.Contains(r.err, "piped is released again") {
		t.Errorf("cut in a pipe: exit code %d, %s", r.code, r.err)
	}
	for _, words := range [][]string{
		{"save", "none", filepath.Join(dir, "none.zst")}, {"save", "vault", dir}, {"save", "vault", filepath.Join(dir, "none", "x")},
		{"up", "--from", out, request}, {"up", "--from", out, "--name", "later", "--start", "1h"},
	} {
		if r := s.sublet(words...); r.code != 2 && r.code != 1 || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", words, r.code, r.err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	s.must("down", "vault", "twin", "back", "bare", "ill", "ill2", "ill3")
	eventually(t, 10*time.Second, func() error {
		if left := matches(filepath.Join(s.run, "agent", "kept", "*", "*")); len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
}

// saysWhatFailed clones and restores a network whose program fails by what it kept, and
// one whose program needs what it kept: exit codes and words are those of up.
func (s *supervisor) saysWhatFailed(dir string) {
	s.t.Helper()
	request, out := filepath.Join(dir, "ill.yaml"), filepath.Join(dir, "ill.tar.zst")
	const text = `network: ill
nodes:
  - {name: db, state: keep, disk: 64MiB, run: [{cmd: [sh, -c, "test ! -e /srv/broken && exec sleep 9876; exit 3"]}]}
  - {name: web}
links: [{ends: [web, db], rate: 1Mbit}]
`
	if err := os.WriteFile(request, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.must("up", request)
	s.must("exec", "ill/db", "--", "touch", "/srv/broken")
	s.must("save", "ill", out)
	for name, words := range map[string][]string{"ill2": {"clone", "ill", "ill2"}, "ill3": {"up", "--from", out, "--name", "ill3"}} {
		if r := s.sublet(words...); r.code != 1 || !strings.Contains(r.err, name+" is degraded") || !strings.Contains(r.err, "node db: program 1 (sh) ended with exit code 3") || strings.Contains(r.out, "running") {
			s.t.Errorf("%v: exit code %d, %s%s", words, r.code, r.out, r.err)
		}
	}
}
