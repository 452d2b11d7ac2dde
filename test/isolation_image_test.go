package test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/internal/stall"
	"sublet/vnet"
)

// What a hostile image has: files without content first, and then one of zeros.
const (
	bombFiles = 50_000
	bombBytes = 1 << 30
)

// bomb writes an archive of `docker save` of some megabytes. That its layer has another
// digest than it says is found at the end, when all of it has been unpacked.
func bomb(t *testing.T, path string) {
	t.Helper()
	var layer, files bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&files, gzip.BestSpeed)
	w := tar.NewWriter(zip)
	for i := range bombFiles {
		wrote(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("d%d/f%d", i/1000, i), Mode: 0o644}))
	}
	wrote(t, w.WriteHeader(&tar.Header{Name: "zeros", Mode: 0o644, Size: bombBytes}))
	wrote(t, zip.Close())
	layer.Write(files.Bytes())
	const part = 64 << 20
	var zeros bytes.Buffer
	zip = gzip.NewWriter(&zeros)
	_, err := zip.Write(make([]byte, part))
	wrote(t, errors.Join(err, zip.Close()))
	for range bombBytes / part {
		layer.Write(zeros.Bytes())
	}
	out, err := os.Create(path)
	wrote(t, err)
	defer out.Close()
	w = tar.NewWriter(out)
	for name, data := range map[string]string{
		"manifest.json": `[{"Config":"config.json","RepoTags":["bomb:1"],"Layers":["layer.tar"]}]`,
		"config.json":   fmt.Sprintf(`{"os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:%064d"]}}`, 1),
		"layer.tar":     layer.String(),
	} {
		wrote(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}))
		_, err := io.WriteString(w, data)
		wrote(t, err)
	}
	wrote(t, w.Close())
}

func wrote(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hostileRounds is how often an idle phase is followed by one of attack.
const (
	hostileRounds = 3
	hostilePhase  = 4 * time.Second
	hostileLeased = 400 * vnet.Mbit
	hostileOwn    = 200 // Mbit/s of the host's own
)

// Images without an end that are unpacked on both hosts take nothing of a leased link
// there, nor of what the hosts send themselves.
//
//	alice, 400M     a ====== backbone ====== b
//	the hosts      h1 - - - - -200M- - - - - h2
//	bob            bomb                      bomb
func TestSoakHostileImages(t *testing.T) {
	if _, err := exec.LookPath("iperf3"); err != nil {
		t.Skip("iperf3 is not installed: tools/install-deps installs it")
	}
	images := t.TempDir()
	wrote(t, os.Chmod(images, 0o755))
	bomb(t, filepath.Join(images, "bomb0.tar"))
	l := newLab(t, "demo", "--images", images)
	both := l.tenants(alice, bob)
	leased, hostile := both[0], both[1]
	l.isMeasured(leased)
	round := 0
	stall.Try(t, func() (lacked float64, wrong error) {
		var idle, attacked [2][]float64
		for range hostileRounds {
			round++
			l.rates(leased, &idle)
			name := fmt.Sprintf("bomb%d.tar", round)
			wrote(t, os.Link(filepath.Join(images, "bomb0.tar"), filepath.Join(images, name)))
			hostile.must("up", "--no-wait", l.file("bombs.yaml", strings.NewReplacer("host: h1", "host: h1, image: "+name, "host: h2", "host: h2, image: "+name).Replace(pair("bombs", "rate: 1Mbit"))))
			eventually(t, 10*time.Second, func() error { return l.unpacking(2) })
			l.rates(leased, &attacked)
			if err := l.unpacking(1); err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("not all of a phase was attacked: %w", err))
			}
			hostile.must("down", "bombs")
			eventually(t, 20*time.Second, func() error {
				l.endUnpacking()
				if l.unpacking(1) == nil {
					return errors.New("it is still unpacked")
				}
				return nil
			})
		}
		lost, harm := harmed(t, "images", idle, attacked)
		return max(lacked, lost), errors.Join(wrong, harm)
	})
}

// isMeasured has a network of the tenant's, and the hosts, ready to be measured.
func (l *lab) isMeasured(leased *tenant) {
	l.t.Helper()
	leased.up(pair("net", fmt.Sprintf("rate: %s", hostileLeased)))
	leased.must("exec", "-d", "net/b", "--", "iperf3", "-s")
	server := exec.Command("nsenter", "--net="+l.host("h2"), "--", "iperf3", "-s", "-p", "5300")
	wrote(l.t, server.Start())
	l.t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	eventually(l.t, 10*time.Second, func() error {
		a := leased.sublet("exec", "net/a", "--", "iperf3", "-c", "b", "-n", "1K")
		b := runCommand(l.iperf("-n", "1K"))
		if a.code != 0 || b.code != 0 {
			return fmt.Errorf("%s%s", a.err, b.err)
		}
		return nil
	})
}

// harmed says what the neighbour and the hosts lack beside an attack, as a row each.
func harmed(t *testing.T, attack string, idle, attacked [2][]float64) (lacked float64, wrong error) {
	t.Helper()
	for i, what := range []string{"the neighbour", "the hosts"} {
		ratio := median(attacked[i]) / median(idle[i])
		t.Logf("| %s | %s | %.1f %.1f | %.1f %.1f | %.4f |", attack, what, median(idle[i]), idle[i], median(attacked[i]), attacked[i], ratio)
		if ratio < 0.99 {
			lacked, wrong = max(lacked, 1-ratio), errors.Join(wrong, fmt.Errorf("%s: %s had %.4f of what they have beside nobody", attack, what, ratio))
		}
	}
	return lacked, wrong
}

// iperf sends from one host to the other, outside of all leases.
func (l *lab) iperf(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=" + l.host("h1"), "--", "iperf3", "-c", "198.18.0.1", "-p", "5300"}, args...)...)
}

// unpacking says whether so many hosts unpack an image.
func (l *lab) unpacking(hosts int) error {
	if now := matches(filepath.Join(l.run, "agent", "images", "*", "half", "*")); len(now) < hosts {
		return fmt.Errorf("images are unpacked at %v", now)
	}
	return nil
}

// endUnpacking kills the processes of this lab that unpack: an image goes on to be
// fetched when nobody waits for it.
func (l *lab) endUnpacking() {
	for _, path := range matches("/proc/[0-9]*/environ") {
		environ, err := os.ReadFile(path)
		if pid, failed := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && failed == nil && bytes.HasPrefix(environ, []byte("SUBLET_UNPACK=")) && bytes.Contains(environ, []byte(l.run)) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// rates measures what the neighbour's link and the hosts carry at once, in Mbit/s.
func (l *lab) rates(leased *tenant, to *[2][]float64) {
	l.t.Helper()
	seconds := fmt.Sprint(int(hostilePhase.Seconds()))
	done := make(chan result)
	go func() {
		done <- runCommand(l.iperf("-b", fmt.Sprint(hostileOwn, "M"), "-t", seconds, "-J"))
	}()
	for i, r := range []result{leased.sublet("exec", "net/a", "--", "iperf3", "-c", "b", "-t", seconds, "-J"), <-done} {
		var said struct {
			End struct {
				Received struct {
					Rate float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			}
		}
		if err := json.Unmarshal([]byte(r.out), &said); err != nil || said.End.Received.Rate == 0 {
			l.t.Fatalf("iperf3: %d, %s%s, %v", r.code, r.out, r.err, err)
		}
		to[i] = append(to[i], said.End.Received.Rate/1e6)
	}
}

func median(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }
