package test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
)

// A script can wait for what it needs: that a network runs, that it was found to
// keep its promises, that it is gone.
func TestWait(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.must("up", "--no-wait", l.file("net.yaml", pair("net", "rate: 10Mbit")))
	l.must("wait", "net")
	if r := l.sublet("wait", "net", "--for", "kept", "--timeout", "1s"); r.code != 1 || !strings.Contains(r.err, "net is not kept after 1s: it is running") {
		t.Errorf("of a network that was not checked: exit code %d, %s", r.code, r.err)
	}
	released := make(chan result, 1)
	go func() { released <- l.sublet("wait", "net", "--for", "released") }()
	l.must("down", "net")
	if r := <-released; r.code != 0 {
		t.Errorf("until released: exit code %d, %s", r.code, r.err)
	}
	if r := l.sublet("wait", "net"); r.code != 1 || !strings.Contains(r.err, "ended") {
		t.Errorf("for what has ended: exit code %d, %s", r.code, r.err)
	}
	for _, line := range []string{"wait none", "wait net --for ever"} {
		if r := l.sublet(strings.Fields(line)...); r.code != 2 {
			t.Errorf("%s: exit code %d, %s", line, r.code, r.err)
		}
	}
}

// A capture ends after what it was bounded by, and sees the end that was named.
func TestCaptureIsBounded(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(pair("n", "rate: 10Mbit"))
	l.must("exec", "-d", "n/a", "--", "ping", "-i", "0.1", "b")
	file := filepath.Join(t.TempDir(), "b.pcapng")
	l.must("capture", "n/a-b", "--at", "b", "-c", "5", "--snap", "60", "-w", file)
	if n := packetsIn(t, file, 60); n != 5 {
		t.Errorf("%d packets, not 5", n)
	}
	l.must("capture", "n/a-b", "--for", "500ms", "-w", file)
	if _, err := exec.LookPath("tcpdump"); err == nil {
		l.must("exec", "-d", "n/b", "--", "ping", "-i", "0.1", "-s", "100", "a")
		l.must("capture", "n/a-b", "--at", "both", "--filter", "icmp[0] = 8 and greater 140", "-c", "3", "-w", file)
		if n := packetsIn(t, file, 142); n != 6 {
			t.Errorf("%d packets of both ends, not 6", n)
		}
		if r := l.sublet("capture", "n/a-b", "--filter", "icmp and and", "-w", file); r.code != 2 || !strings.Contains(r.err, "syntax error") {
			t.Errorf("a filter that is none: exit code %d, %s", r.code, r.err)
		}
	}
	for _, line := range []string{"--at c", "-c 0", "--for -1s", "--snap 1000000"} {
		if r := l.sublet(append([]string{"capture", "n/a-b", "-w", file}, strings.Fields(line)...)...); r.code != 2 {
			t.Errorf("capture %s: exit code %d, %s", line, r.code, r.err)
		}
	}
	if n := packetsIn(t, file, 1<<20); n == 0 {
		t.Error("nothing in half a second, or emptied by a mistake")
	}
}

// What exists as a file says is left as it is; what exists otherwise is a
// conflict, which has its own exit code, and in JSON its type.
func TestUpAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	file := l.file("n.yaml", pair("n", "rate: 10Mbit"))
	l.must("up", file)
	if out := l.must("up", file); !strings.Contains(out, "as asked already") {
		t.Errorf("the same again: %s", out)
	}
	other := l.file("other.yaml", pair("n", "rate: 20Mbit"))
	if r := l.sublet("up", other); r.code != 5 || !strings.Contains(r.err, "sublet apply") {
		t.Errorf("another of that name: exit code %d, %s", r.code, r.err)
	}
	var said struct {
		Type string `json:"type"`
		Code int    `json:"exit_code"`
	}
	r := l.sublet("up", other, "-o", "json")
	if err := json.Unmarshal([]byte(r.err), &said); err != nil || said.Type != "urn:sublet:conflict" || said.Code != 5 {
		t.Errorf("%v: %s", err, r.err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	list := l.file("list", "")
	seen := make(chan result, 1)
	go func() {
		cmd := exec.CommandContext(ctx, "sh", "-c", `exec "$0" --run "$1" leases -w > "$2"`, program, l.run, list)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
		seen <- runCommand(cmd)
	}()
	says := func(text string) {
		eventually(t, 20*time.Second, func() error {
			if said, err := os.ReadFile(list); err != nil || !strings.Contains(string(said), text) {
				return fmt.Errorf("the list never says %q: %s, %v", text, said, err)
			}
			return nil
		})
	}
	says("running")
	l.must("down", "n")
	says("ended")
	cancel()
	if r := <-seen; r.code != 130 {
		t.Errorf("leases -w ends with %d: %s", r.code, r.err)
	}
}

// packetsIn counts the packets of a capture, none of which is longer than most.
func packetsIn(t *testing.T, name string, most int) (n int) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewNgReader(f, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, _, err := r.ReadPacketData()
		if err != nil {
			return n
		}
		if len(data) > most {
			t.Errorf("a packet of %d bytes", len(data))
		}
		n++
	}
}

// What a link carries is seen while it carries it.
func TestTopShowsWhatIsCarried(t *testing.T) {
	l := newLab(t, "demo")
	l.up(pair("n", "rate: 10Mbit"))
	l.must("exec", "-d", "n/a", "--", "ping", "-i", "0.02", "b")
	eventually(t, 20*time.Second, func() error {
		out := l.must("top", "n", "-n", "1", "-o", "json")
		var loads []struct {
			Network string
			Link    string
			Packets float64 `json:"packets_per_s"`
		}
		if err := json.Unmarshal([]byte(out), &loads); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for _, load := range loads {
			if load.Network == "n" && load.Link == "a-b" && load.Packets >= 10 {
				return nil
			}
		}
		return errors.New(out)
	})
}
