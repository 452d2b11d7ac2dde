package image

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"golang.org/x/sys/unix"

	registries "sublet/datapath/image/registry"
)

// served is a registry over HTTPS that has an image by demo/web:1; asked counts
// the blobs that it sent.
func served(t *testing.T, b *bundle) (host string, transport http.RoundTripper, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			asked.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	host, transport = strings.TrimPrefix(s.URL, "https://"), s.Client().Transport
	dir := t.TempDir()
	b.directory(t, dir)
	index, err := layout.ImageIndexFromPath(dir)
	check(t, err)
	var chosen v1.Image
	chosen, err = index.Image(b.index.Manifests[0].Digest)
	check(t, err)
	ref, err := name.ParseReference(host + "/demo/web:1")
	check(t, err)
	check(t, remote.Write(ref, chosen, remote.WithTransport(transport)))
	asked.Store(0)
	return host, transport, asked
}

func TestRegistry(t *testing.T) {
	b := build(t, pack(t, lower...), pack(t, upper...)).seal(t)
	host, transport, asked := served(t, b)
	s := store(t, Config{Registry: registries.Registries{Allowed: []string{host}, Transport: transport}})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			image, err := s.Get(t.Context(), host+"/demo/web:1", Owner{})
			if err != nil || image.Config.WorkingDir != "/srv" {
				t.Errorf("get %+v, %v", image, err)
			}
		})
	}
	all.Wait()
	if n := asked.Load(); n != 3 { // a configuration and two layers
		t.Errorf("eight who want an image fetch %d blobs", n)
	}
	pinned := host + "/demo/web@" + b.index.Manifests[0].Digest.String()
	if _, err := s.Get(t.Context(), pinned, Owner{}); err != nil {
		t.Error(err)
	}
	s.Registry = registries.Registries{Allowed: []string{host}, Transport: http.NewFileTransport(http.Dir(t.TempDir()))} // the registry is away
	if _, err := s.Get(t.Context(), host+"/demo/web:1", Owner{}); err != nil {
		t.Errorf("an image that is here is asked for again: %v", err)
	}
	if _, err := s.Get(t.Context(), host+"/demo/other:1", Owner{}); err == nil {
		t.Error("an image came from nowhere")
	}
}

func TestOnlyAllowedRegistries(t *testing.T) {
	b := build(t, pack(t, lower...)).seal(t)
	host, transport, asked := served(t, b)
	for what, c := range map[string]Config{
		"none allowed":    {Registry: registries.Registries{Transport: transport}},
		"another allowed": {Registry: registries.Registries{Allowed: []string{"docker.io"}, Transport: transport}},
	} {
		if _, err := store(t, c).Get(t.Context(), host+"/demo/web:1", Owner{}); err == nil || !strings.Contains(err.Error(), "it is not there: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	plainHTTP := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer plainHTTP.Close()
	at := strings.TrimPrefix(plainHTTP.URL, "http://")
	if _, err := store(t, Config{Registry: registries.Registries{Allowed: []string{at}}}).Get(t.Context(), at+"/demo/web:1", Owner{}); err == nil {
		t.Error("a registry was asked without TLS")
	}
	if asked.Load() != 0 {
		t.Error("a registry was asked that is not allowed")
	}
}

func TestLayersFromElsewhereAreRefused(t *testing.T) {
	b := build(t, pack(t, lower...))
	b.manifest.Layers[0].URLs = []string{"https://192.0.2.1/secret"}
	host, transport, _ := served(t, b.seal(t))
	_, err := store(t, Config{Registry: registries.Registries{Allowed: []string{host}, Transport: transport}}).Get(t.Context(), host+"/demo/web:1", Owner{})
	if err == nil || !strings.Contains(err.Error(), "kept elsewhere") {
		t.Error(err)
	}
}

func TestNamesOutsideTheDirectory(t *testing.T) {
	dir := outside(t)
	s := store(t, Config{})
	check(t, os.Symlink(dir, filepath.Join(s.Offered, "out")))
	check(t, syscall.Mkfifo(filepath.Join(s.Offered, "pipe"), 0o600))
	for _, name := range []string{"../" + filepath.Base(dir), dir, "out", "out/secret", "pipe", "none", "", "."} {
		if image, err := s.Get(t.Context(), name, Owner{}); err == nil && image.Root != filepath.Clean(s.Offered) {
			t.Errorf("%q is %+v", name, image)
		}
	}
}

func TestFetchGoesOnAndIsAnnounced(t *testing.T) {
	told := make(chan bool, 1)
	s := store(t, Config{Changed: func() { told <- true }})
	build(t, pack(t, lower...)).seal(t).archive(t, filepath.Join(s.Offered, "a.tar"))
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Get(now, "a.tar", Owner{}); err != nil && !errors.Is(err, ErrFetching) {
		t.Fatal(err)
	}
	<-told
	image, err := s.Get(t.Context(), "a.tar", Owner{})
	check(t, err)
	if again, err := s.open(image.ID); err != nil || again.Root != image.Root {
		t.Error(again, err)
	}
}

func TestUnusedImagesGo(t *testing.T) {
	s := store(t, Config{})
	build(t, pack(t, lower...)).seal(t).archive(t, filepath.Join(s.Offered, "a.tar"))
	image, err := s.Get(t.Context(), "a.tar", Owner{})
	check(t, err)
	there := func() bool { _, err := os.Stat(image.Root); return err == nil }
	check(t, s.Collect(nil))
	if !there() {
		t.Error("an image that somebody just got is removed")
	}
	old := time.Now().Add(-2 * idle)
	check(t, os.Chtimes(s.path("tree", image.ID), old, old))
	check(t, s.Collect(map[string]bool{image.ID: true}))
	if !there() {
		t.Error("an image in use is removed")
	}
	check(t, s.Collect(map[string]bool{}))
	if !there() {
		t.Error("an image is removed that was in use a moment ago")
	}
	check(t, os.Chtimes(s.path("tree", image.ID), old, old))
	check(t, s.Collect(nil))
	if there() {
		t.Error("an image stays that nothing uses")
	}
	if left, _ := os.ReadDir(s.path("half")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A process that unpacks is killed; the next user of the store removes what it
// left, and has the image.
func TestKilledWhileUnpacking(t *testing.T) {
	if dir := os.Getenv("SUBLET_TEST_UNPACK"); dir != "" {
		s, err := New(Config{Dir: filepath.Join(dir, "store"), Offered: dir, Apart: unpacker})
		check(t, err)
		_, _ = s.Get(t.Context(), "a.tar", Owner{})
		return
	}
	dir := t.TempDir()
	s := store(t, Config{Dir: filepath.Join(dir, "store"), Offered: dir})
	many := make([]entry, 5000)
	for i := range many {
		many[i] = entry{name: "f" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + "/" + time.Duration(i).String(), text: "text"}
	}
	build(t, pack(t, many...)).seal(t).archive(t, filepath.Join(dir, "a.tar"))
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestKilledWhileUnpacking$")
	cmd.Env = append(os.Environ(), "SUBLET_TEST_UNPACK="+dir)
	check(t, cmd.Start())
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if found, _ := filepath.Glob(s.path("half", "*", "root", "*")); len(found) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing is unpacked")
		}
	}
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	again, err := New(s.Config)
	check(t, err)
	if left, _ := os.ReadDir(s.path("half")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	image, err := again.Get(t.Context(), "a.tar", Owner{})
	check(t, err)
	if got := contents(t, image.Root); got["fa/0s"] != "text" {
		t.Errorf("the image has %d files", len(got))
	}
}

// What cannot be had is said with what the operator would do.
func TestUnknownImagesSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		config     Config
		name, want string
	}{
		{Config{Registry: registries.Registries{}}, "docker.io/library/alpine:3.20", "it is not there: the operator offers nothing by that name, and no registry is allowed here. The operator can put it into the directory of images or allow its registry (sublet agent --registry docker.io)"},
		{Config{Registry: registries.Registries{Allowed: []string{"quay.io"}}}, "ghcr.io/a/b:1", "it is not there: the operator offers nothing by that name, and the registries that are allowed here are quay.io. The operator can put it into the directory of images or allow its registry (sublet agent --registry ghcr.io)"},
	} {
		if _, err := store(t, c.config).Get(t.Context(), c.name, Owner{}); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%v", err)
		}
	}
}

// A packed archive is taken as docker load takes it, and held to the same bounds.
func TestPackedArchives(t *testing.T) {
	b := build(t, pack(t, lower...)).seal(t)
	offered := t.TempDir()
	b.archive(t, filepath.Join(offered, "plain.tar"))
	text, err := os.ReadFile(filepath.Join(offered, "plain.tar"))
	check(t, err)
	for name, packed := range map[string][]byte{"web.tar.gz": zipped(t, text), "web.tar.zst": zstandard(t, text), "cut.tar.gz": zipped(t, text)[:400]} {
		check(t, os.WriteFile(filepath.Join(offered, name), packed, 0o644))
	}
	s := store(t, Config{Offered: offered})
	want, err := s.Get(t.Context(), "plain.tar", Owner{})
	check(t, err)
	for _, name := range []string{"web.tar.gz", "web.tar.zst"} {
		if got, err := s.Get(t.Context(), name, Owner{}); err != nil || got.Root != want.Root {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	if _, err := s.Get(t.Context(), "cut.tar.gz", Owner{}); err == nil || !strings.Contains(err.Error(), "unpack the archive") {
		t.Errorf("half of one: %v", err)
	}
	limits := DefaultLimits
	limits.Bytes = int64(len(text)) / 2
	if _, err := store(t, Config{Offered: offered, Limits: limits}).Get(t.Context(), "web.tar.gz", Owner{}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large one: %v", err)
	}
}

// A layer is unpacked by a process with the least claim to processors and disks, and what
// unpacks it has it again as it was.
func TestUnpackingTakesWhatIsLeft(t *testing.T) {
	s := store(t, Config{})
	nice := func(pid int) int {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
		check(t, err)
		return 20 - n
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, class := nice(0), func(pid int) uintptr {
		n, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0)
		if errno != 0 {
			t.Fatal(errno)
		}
		return n &^ (1<<13 - 1)
	}
	classBefore := class(0)
	cmd := s.Apart()
	wait, err := cmd.StdinPipe()
	check(t, err)
	cmd.Env = []string{workVariable + `={"root":"/","digest":"sha256:` + strings.Repeat("0", 64) + `"}`}
	check(t, quietly(cmd))
	if got := nice(cmd.Process.Pid); got != mostNice {
		t.Errorf("its nice value is %d", got)
	}
	if got := class(cmd.Process.Pid); got != idleClass {
		t.Errorf("its class of the disk is %x", got)
	}
	if nice(0) != before || class(0) != classBefore {
		t.Errorf("who started it has nice value %d and class %x", nice(0), class(0))
	}
	check(t, wait.Close())
	_ = cmd.Wait()
}

// What a process that unpacks does not survive is an error, and leaves nothing.
func TestUnpackingThatIsKilled(t *testing.T) {
	s := store(t, Config{})
	s.Apart = func() *exec.Cmd { return exec.Command("sh", "-c", "head -c 100 >/dev/null; kill -9 $$") }
	build(t, pack(t, lower...)).seal(t).archive(t, filepath.Join(s.Offered, "a.tar"))
	if _, err := s.Get(t.Context(), "a.tar", Owner{}); err == nil || !strings.Contains(err.Error(), "the process that unpacked it ended: signal: killed") {
		t.Errorf("it is said to be %v", err)
	}
	if left, _ := os.ReadDir(s.path("half")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
