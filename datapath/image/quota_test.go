package image

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	registries "sublet/datapath/image/registry"
)

// offer makes an image of so many bytes by a name.
func offer(t *testing.T, s *Store, name string, bytes int) {
	t.Helper()
	build(t, pack(t, entry{name: "in-" + name, text: strings.Repeat(name[:1], bytes)})).seal(t).archive(t, filepath.Join(s.Offered, name))
}

// got gets an image and makes it look so long unused.
func got(t *testing.T, s *Store, name string, unused time.Duration) Image {
	t.Helper()
	image, err := s.Get(t.Context(), name, Owner{})
	check(t, err)
	then := time.Now().Add(-unused)
	check(t, os.Chtimes(s.path("tree", image.ID), then, then))
	return image
}

// For an image that does not fit, those leave that nobody has used for longest, and none
// that a node uses or somebody just got. One for which that is not enough is refused,
// and leaves nothing.
func TestQuota(t *testing.T) {
	s := store(t, Config{Quota: 8 << 20})
	for _, name := range []string{"a", "b", "c", "d"} {
		offer(t, s, name, 2<<20)
	}
	offer(t, s, "whole", 9<<20)
	offer(t, s, "most", 5<<20)
	there := func(want ...string) {
		t.Helper()
		for _, entry := range []string{"a", "b", "c", "d", "most"} {
			found, _ := filepath.Glob(s.path("tree", "*", "root", "in-"+entry))
			if (len(found) > 0) != (strings.Contains(strings.Join(want, " "), entry)) {
				t.Errorf("%s is there: %v, want %v", entry, found, want)
			}
		}
		if left, _ := os.ReadDir(s.path("half")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	refused := func(name string) {
		t.Helper()
		_, err := s.Get(t.Context(), name, Owner{})
		if !errors.Is(err, ErrNoRoom) || strings.ContainsRune(err.Error(), '\n') || !strings.Contains(err.Error(), "image "+name) || !strings.Contains(err.Error(), "--images-quota") {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, b := got(t, s, "a", 3*time.Minute), got(t, s, "b", 2*time.Minute)
	got(t, s, "c", 4*time.Minute)
	refused("d") // what nodes use is not known yet
	there("a", "b", "c")
	check(t, s.Collect(map[string]bool{a.ID: true}))
	delete(s.fetches, "0 d") // an error stays the answer for a moment
	got(t, s, "d", 0)
	there("a", "b", "d")
	refused("most") // a is used, and d just came
	there("a", "d")
	refused("whole")
	there("a", "d")
	check(t, s.Collect(map[string]bool{a.ID: true, b.ID: true}))
	got(t, s, "b", 0)
	there("a", "b", "d")
}

// Names of one image share its tree, and are unpacked once.
func TestOnceForEachDigest(t *testing.T) {
	b := build(t, pack(t, lower...), pack(t, upper...)).seal(t)
	host, transport, asked := served(t, b)
	s := store(t, Config{Registry: registries.Registries{Allowed: []string{host}, Transport: transport}})
	var all sync.WaitGroup
	for _, name := range []string{"/demo/web:1", "/demo/web@" + b.index.Manifests[0].Digest.String()} {
		for range 4 {
			all.Go(func() {
				if _, err := s.Get(t.Context(), host+name, Owner{}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if n := asked.Load(); n != 4 { // two layers, and the configuration for each name
		t.Errorf("two names of an image fetch %d blobs", n)
	}
}

// What a registry answers is told in a line, without its addresses or its pages.
func TestRegistryErrors(t *testing.T) {
	for status, want := range map[int]string{
		401: "shows no image of that name", 403: "shows no image of that name", 404: "has no image of that name and tag",
		429: "takes no more requests", 503: "it fails (status 503)", 418: "it refuses (status 418)",
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				return
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<html>\nsecret page</html>"))
		}))
		host := strings.TrimPrefix(server.URL, "https://")
		s := store(t, Config{Registry: registries.Registries{Allowed: []string{host}, Transport: server.Client().Transport}})
		_, err := s.Get(t.Context(), host+"/demo/web:1", Owner{})
		server.Close()
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n<") || strings.Contains(err.Error(), "https://") {
			t.Errorf("%d: %v", status, err)
		}
		s = store(t, Config{Registry: registries.Registries{Allowed: []string{host}, Transport: server.Client().Transport}})
		if _, err := s.Get(t.Context(), host+"/demo/web:1", Owner{}); err == nil || !strings.Contains(err.Error(), "nothing answers there") {
			t.Errorf("a registry that is away: %v", err)
		}
	}
	for _, host := range []string{"registry.invalid"} {
		s := store(t, Config{Registry: registries.Registries{Allowed: []string{host}}})
		if _, err := s.Get(t.Context(), host+"/demo/web:1", Owner{}); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", host, err)
		}
	}
}
