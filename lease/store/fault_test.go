package store

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/lease"
	"sublet/vnet"
)

// write is the child of TestKill: it saves leases for ever and prints the
// serial of each one that was acknowledged.
func write(dir string) {
	ttl, _ := time.ParseDuration(os.Getenv("SUBLET_TEST_TTL"))
	s, err := Open(context.Background(), Config{Dir: dir, TTL: ttl})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	state, err := s.Load(context.Background())
	for serial := state.Counters.Serial + 1; err == nil; serial++ {
		err = s.Save(context.Background(), lease.Changes{
			Counters: lease.Counters{Serial: serial}, Leases: []vnet.Lease{sample(serial, 2)}})
		if err == nil {
			fmt.Println(serial)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func TestKillLosesNothingAcknowledged(t *testing.T) {
	d := dir(t)
	for range 3 {
		last := killedWriter(t, d, 20+mathrand.IntN(200))
		s := open(t, Config{Dir: d})
		state, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if state.Counters.Serial < last || uint64(len(state.Leases)) != state.Counters.Serial {
			t.Fatalf("acknowledged %d, stored %d leases, counter %d", last, len(state.Leases), state.Counters.Serial)
		}
		s.Close()
	}
}

// killedWriter runs a writer, kills it -9 after some acknowledgements, and
// returns the last serial it acknowledged.
func killedWriter(t *testing.T, dir string, after int) (last uint64) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "SUBLET_TEST_WRITER="+dir)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if last, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
		if n == after {
			child.Process.Signal(syscall.SIGKILL)
		}
	}
	child.Wait()
	if last == 0 {
		t.Fatal("the writer wrote nothing")
	}
	return last
}

// heavy is a lease whose JSON neither compresses nor fits often into a quota.
func heavy(serial uint64) vnet.Lease {
	l := sample(serial, 0)
	noise := make([]byte, 200<<10)
	rand.Read(noise)
	l.Message = fmt.Sprintf("%x", noise)
	return l
}

func TestQuota(t *testing.T) {
	s := open(t, Config{Dir: dir(t), Quota: 16 << 20})
	var stored []vnet.LeaseID
	var err error
	for serial := uint64(1); err == nil && serial < 1000; serial++ {
		l := heavy(serial)
		if err = s.Save(t.Context(), lease.Changes{Counters: lease.Counters{Serial: serial}, Leases: []vnet.Lease{l}}); err == nil {
			stored = append(stored, l.ID())
		}
	}
	if !errors.Is(err, ErrNoSpace) || len(stored) < 10 {
		t.Fatalf("after %d leases: %v", len(stored), err)
	}
	// One more may be there: the write that failed can be in all the same.
	if state, err := s.Load(t.Context()); err != nil || len(state.Leases) < len(stored) || len(state.Leases) > len(stored)+1 {
		t.Fatalf("%d of %d leases, %v", len(state.Leases), len(stored), err)
	}
	for _, id := range stored[1:] { // as an operator would, with etcdctl
		if _, err := s.client.Delete(t.Context(), s.key(leaseKey(id))); err != nil {
			t.Fatal(err)
		}
	}
	s.reclaimed = time.Time{} // as if reclaimEvery had passed
	save(t, s, lease.Changes{Counters: lease.Counters{Serial: 5000}, Leases: []vnet.Lease{heavy(5000)}})
}

// TestDiskFull fills a small file system of its own: nothing new is taken on,
// but what is there can change and go, from the space that was kept for it.
func TestDiskFull(t *testing.T) {
	d := smallDisk(t, "300m")
	s := open(t, Config{Dir: filepath.Join(d, "data")})
	want := lease.State{Leases: []vnet.Lease{sample(1, 1)}, Counters: lease.Counters{Serial: 1}}
	changes := lease.Changes{Counters: want.Counters, Leases: want.Leases}
	if err := s.Room(); err != nil {
		t.Fatalf("room on an empty disk: %v", err)
	}
	save(t, s, changes)

	var err error
	saved := 0
	for ; err == nil; saved++ { // what the ballast gives back is taken by others too
		fill(t, filepath.Join(d, fmt.Sprint("filled", saved)), s, 1<<20)
		if saved == 0 && !errors.Is(s.Room(), ErrNoSpace) {
			t.Error("there is room on a full disk")
		}
		err = s.Save(t.Context(), changes)
	}
	if !errors.Is(err, ErrNoSpace) || !errors.Is(err, lease.ErrFull) || saved < 2 {
		t.Errorf("after %d saves on a full disk: %v", saved-1, err)
	}
	expect(t, s, want)

	s.Close()
	s = open(t, Config{Dir: filepath.Join(d, "data")}) // the last of the ballast is for this
	save(t, s, changes)
	expect(t, s, want)
	s.Close()
	fill(t, filepath.Join(d, "last"), s, 1<<20)
	if _, err := Open(t.Context(), Config{Dir: filepath.Join(d, "data")}); !errors.Is(err, ErrNoSpace) {
		t.Errorf("started on a full disk without ballast: %v", err)
	}
	os.Remove(filepath.Join(d, "last"))
	for i := range saved {
		os.Remove(filepath.Join(d, fmt.Sprint("filled", i)))
	}
	s = open(t, Config{Dir: filepath.Join(d, "data")})
	save(t, s, changes)
	expect(t, s, want)
	if err := s.Room(); err != nil || s.embedded.ballast.held() == 0 {
		t.Errorf("room when the disk is free again: %v, ballast of %d bytes", err, s.embedded.ballast.held())
	}
}

// A store has room on /run of a machine with 0.5 or 1 GB of memory, a tenth of
// it, beside what else is there.
func TestStoreFitsOnSmallDisks(t *testing.T) {
	for _, size := range []string{"48m", "97m"} {
		d := smallDisk(t, size)
		s := open(t, Config{Dir: filepath.Join(d, "run", "lab", "data")})
		if err := s.Room(); err != nil {
			t.Errorf("on a disk of %s: %v", size, err)
		}
		save(t, s, lease.Changes{Leases: []vnet.Lease{sample(1, 1)}, Counters: lease.Counters{Serial: 1}})
		s.Close()
		s = open(t, Config{Dir: filepath.Join(d, "run", "lab", "data")})
		if err := s.Room(); err != nil {
			t.Errorf("on a disk of %s, started again: %v", size, err)
		}
		s.Close()
	}
}

// smallDisk mounts a file system of a size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a tmpfs takes root")
	}
	d := dir(t)
	if err := unix.Mount("sublet-test", d, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(d, unix.MNT_DETACH) })
	return d
}

// fill takes all but `leave` bytes of the store's disk.
func fill(t *testing.T, path string, s *Store, leave int64) {
	t.Helper()
	free, err := s.embedded.free()
	if err != nil {
		t.Fatal(err)
	}
	if free <= leave {
		t.Fatalf("only %d MiB are free", free>>20)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, free-leave); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkSave(b *testing.B) {
	d, err := os.MkdirTemp("", "store")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(d)
	s, err := Open(b.Context(), Config{Dir: d, TTL: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	l := sample(1, 50)
	for b.Loop() {
		if err := s.Save(b.Context(), lease.Changes{Leases: []vnet.Lease{l}}); err != nil {
			b.Fatal(err)
		}
	}
}
