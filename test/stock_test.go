package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Kernels that people have, in software (test/stock): what README's table says of
// them. Each boots, and either refuses a lab in one line that names the cure, or
// carries a lease between two hosts of a lab at its rate, on a machine whose /run
// is small; nothing stays, and the doctor loads no module.
func TestSoakStockKernels(t *testing.T) {
	stock := os.Getenv("SUBLET_STOCK")
	images, _ := filepath.Glob(filepath.Join(stock, "boot", "vmlinuz-*"))
	if stock == "" || len(images) == 0 || os.Geteuid() != 0 {
		t.Skip("needs root, and kernels below STOCK: make stock makes them, 4 GB")
	}
	g := &stockGuest{t: t, stock: stock}
	g.guest(time.Minute, "net", "1")
	t.Cleanup(func() { g.guest(time.Minute, "net-down") })
	g.guest(time.Minute, "share", os.Getenv("SUBLET_BIN"))
	for _, image := range images {
		release := strings.TrimPrefix(filepath.Base(image), "vmlinuz-")
		t.Run(release, func(t *testing.T) {
			g := &stockGuest{t: t, stock: stock}
			if said := g.smoke(release); strings.HasPrefix(release, "6.1.") {
				said.refused(t)
			} else {
				said.carries(t)
			}
		})
	}
}

// stockGuest runs test/stock/guest.
type stockGuest struct {
	t     *testing.T
	stock string
}

func (g *stockGuest) guest(within time.Duration, args ...string) string {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "stock/guest", args...)
	cmd.Env = append(os.Environ(), "STOCK="+g.stock, "T="+strconv.Itoa(int(within.Seconds())))
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		g.t.Fatalf("guest %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// smoke boots a kernel and runs test/stock/smoke there.
func (g *stockGuest) smoke(release string) stockSays {
	const name = "t"
	g.guest(time.Minute, "start", name, release, "-c", "2", "-m", "1024")
	defer g.guest(time.Minute, "rm", name)
	defer g.guest(time.Minute, "stop", name)
	g.guest(2*time.Minute, "wait", name)
	g.guest(time.Minute, "sh", name, "cp /share/sublet /usr/local/bin")
	g.guest(time.Minute, "put", name, "stock/smoke")
	text := g.guest(5*time.Minute, "sh", name, "bash /root/smoke")
	g.t.Logf("%s", text)
	said := make(stockSays)
	for line := range strings.Lines(text) {
		if word, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			said[word] = append(said[word], value)
		}
	}
	return said
}

// stockSays are the lines of smoke, by their first word.
type stockSays map[string][]string

func (s stockSays) want(t *testing.T, word, value string) {
	t.Helper()
	if got := strings.Join(s[word], "\n"); got != value {
		t.Errorf("%s: %q, want %q", word, got, value)
	}
}

func (s stockSays) refused(t *testing.T) {
	s.want(t, "doctor", "1")
	s.want(t, "loaded", "0")
	s.want(t, "left", "0")
	line := strings.Join(s["lab"], "\n")
	for _, part := range []string{"Linux 6.6 or newer", "TCX", "linux-image-cloud-amd64 of bookworm-backports"} {
		if len(s["lab"]) != 1 || !strings.Contains(line, part) {
			t.Errorf("lab up says %q, not %q in one line", line, part)
		}
	}
}

// carries checks that TCP gets the payload of 10 Mbit/s of full frames (1398 of
// 1464 bytes), to 1 %. Too little, three times, is the emulation's.
func (s stockSays) carries(t *testing.T) {
	s.want(t, "doctor", "0")
	s.want(t, "loaded", "0")
	s.want(t, "left", "0")
	const right = 10e6 * 1398 / 1464
	best := 0.0
	for _, text := range s["payload"] {
		got, err := strconv.ParseFloat(text, 64)
		if err != nil || got > right*1.01 {
			t.Errorf("TCP gets %s bit/s of payload, more than %.0f", text, right)
		}
		best = max(best, got)
	}
	if len(s["payload"]) != 3 || best < right/2 {
		t.Fatalf("no lease was carried: up %q, payload %q", s["up"], s["payload"])
	}
	if best < right*0.99 {
		t.Skipf("the emulation is too slow to tell: TCP gets %.0f bit/s of %.0f", best, right)
	}
}
