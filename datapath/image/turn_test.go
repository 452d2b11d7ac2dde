package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// endless is a registry whose images never come.
type endless struct{ asked, ended chan string }

func (endless) Names() []string              { return []string{"endless"} }
func (endless) Allows(string) (string, bool) { return "endless", true }

func (e endless) Image(ctx context.Context, text string, _ v1.Platform, _ int64) (v1.Image, error) {
	e.asked <- text
	<-ctx.Done()
	e.ended <- text
	return nil, ctx.Err()
}

// A tenant's endless images leave turns for others; those that nobody wants any more end,
// waiting ones too, and one that somebody still wants goes on.
func TestFetchesAreFairAndEnd(t *testing.T) {
	e := endless{make(chan string, 100), make(chan string, 100)}
	s := store(t, Config{Registry: e})
	get := func(node, tenant, name string) error {
		s.Want(node, tenant, name, Owner{})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := s.Get(ctx, name, Owner{})
		return err
	}
	heard := func(from chan string) string {
		select {
		case name := <-from:
			return name
		case <-time.After(20 * time.Second):
			return "nothing"
		}
	}
	for i := range 6 {
		name := fmt.Sprint("mallory-", i)
		if err := get(name, "mallory", name); !errors.Is(err, ErrFetching) {
			t.Fatal(err)
		}
	}
	if err := get("other", "alice", "mallory-0"); !errors.Is(err, ErrFetching) {
		t.Fatal(err)
	}
	asked := []string{heard(e.asked), heard(e.asked)}
	if slices.Sort(asked); !slices.Equal(asked, []string{"mallory-0", "mallory-1"}) || len(e.asked) > 0 {
		t.Errorf("asked for %v and %d more, want two of one tenant", asked, len(e.asked))
	}
	build(t, pack(t, lower...)).seal(t).archive(t, filepath.Join(s.Offered, "a.tar"))
	s.Want("mine", "alice", "a.tar", Owner{})
	if image, err := s.Get(t.Context(), "a.tar", Owner{}); err != nil || image.Root == "" {
		t.Fatalf("another tenant has %+v: %v", image, err)
	}
	s.Leave("mine")

	s.Leave("mallory-0") // which another node waits for
	s.Leave("mallory-1")
	if name := heard(e.ended); name != "mallory-1" {
		t.Errorf("%s ended, want mallory-1", name)
	}
	if name := heard(e.asked); name != "mallory-2" {
		t.Errorf("asked for %s, want the next", name)
	}
	for _, node := range []string{"mallory-5", "mallory-4", "mallory-3", "mallory-2", "other"} {
		s.Leave(node)
	}
	ended := []string{heard(e.ended), heard(e.ended)}
	if slices.Sort(ended); !slices.Equal(ended, []string{"mallory-0", "mallory-2"}) {
		t.Errorf("%v ended", ended)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wishes)+len(s.fetches) > 0 {
		t.Errorf("left: %v, %v", s.wishes, s.fetches)
	}
}

// An image whose network goes while it is unpacked is unpacked no further, and leaves
// nothing.
func TestUnpackingEndsWithItsNode(t *testing.T) {
	changed := make(chan bool, 1)
	s := store(t, Config{Changed: func() { changed <- true }})
	many := make([]entry, 20000)
	for i := range many {
		many[i] = entry{name: fmt.Sprintf("d%d/f%d", i%100, i), text: "text"}
	}
	build(t, pack(t, many...)).seal(t).archive(t, filepath.Join(s.Offered, "a.tar"))
	s.Want("n", "alice", "a.tar", Owner{})
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Get(now, "a.tar", Owner{}); !errors.Is(err, ErrFetching) {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if found, _ := filepath.Glob(s.path("half", "*", "root", "*")); len(found) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing is unpacked")
		}
	}
	s.Leave("n")
	<-changed
	for _, dir := range []string{"half", "tree"} {
		if left, err := os.ReadDir(s.path(dir)); len(left) > 0 || err != nil {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}

// While an image is tried again that could not be had, why is still what is told.
func TestFailureStaysTheAnswer(t *testing.T) {
	e := endless{make(chan string, 1), make(chan string, 1)}
	s := store(t, Config{Registry: e, Limits: Limits{Bytes: 1 << 20, Entries: 10, Layers: 1, Time: 50 * time.Millisecond}})
	first, err := s.Get(t.Context(), "web", Owner{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(first, err)
	}
	<-e.asked
	s.mu.Lock()
	s.Limits.Time = time.Hour
	s.fetches[keyOf("web", Owner{})].until = time.Now()
	s.mu.Unlock()
	s.Want("n", "alice", "web", Owner{})
	now, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, again := s.Get(now, "web", Owner{}); again == nil || again.Error() != err.Error() {
		t.Errorf("told %v, before %v", again, err)
	}
	if name := <-e.asked; name != "web" {
		t.Errorf("asked for %s", name)
	}
	s.Leave("n")
	<-e.ended
}

func TestSizesInWords(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 bytes", 1000: "1000 bytes", 1 << 30: "1 GiB", 100 << 40: "100 TiB", 5000 << 40: "5000 TiB", 1<<30 + 1<<20: "1025 MiB"} {
		if got := inBinary(bytes); got != want {
			t.Errorf("%d bytes are %s, want %s", bytes, got, want)
		}
	}
}
