package capture

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// veth makes two namespaces joined by a pair (c0: 192.0.2.1, c1: 192.0.2.2)
// and returns their files.
func veth(t *testing.T) (near, far string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	near, far = namespace(t, "near"), namespace(t, "far")
	in(t, near, "ip", "link", "add", "c0", "type", "veth", "peer", "name", "c1")
	peer, err := os.Open(far)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	cmd := exec.Command("nsenter", "--net="+near, "ip", "link", "set", "c1", "netns", "/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{peer}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, end := range [][3]string{{near, "c0", "192.0.2.1/24"}, {far, "c1", "192.0.2.2/24"}} {
		in(t, end[0], "ip", "address", "add", end[2], "dev", end[1])
		in(t, end[0], "ip", "link", "set", end[1], "up")
	}
	return near, far
}

func namespace(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread goes with the goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, "")
		}
		result <- err
	}()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	return path
}

func in(t *testing.T, ns string, argv ...string) {
	t.Helper()
	out, err := exec.Command("nsenter", append([]string{"--net=" + ns}, argv...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", argv, err, out)
	}
}

// running captures in the background; stop ends it and gives its error.
func running(t *testing.T, ns string, opt Options, w io.Writer) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	ready := &firstWrite{Writer: w, done: make(chan struct{})}
	go func() { result <- Stream(ctx, ns, "c0", "a/c0", "alice/net back", opt, ready) }()
	select {
	case <-ready.done:
	case err := <-result:
		t.Fatal(err)
	}
	return func() error { cancel(); return <-result }
}

// firstWrite tells when the header is out, and so the socket open.
type firstWrite struct {
	io.Writer
	done chan struct{}
}

func (f *firstWrite) Write(p []byte) (int, error) {
	select {
	case <-f.done:
	default:
		defer close(f.done)
	}
	return f.Writer.Write(p)
}

func TestStream(t *testing.T) {
	near, _ := veth(t)
	var file bytes.Buffer
	stop := running(t, near, Options{}, &file)
	before := time.Now().Add(-5 * time.Second)
	in(t, near, "ping", "-q", "-c", "3", "-i", "0.01", "192.0.2.2")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	link, _ := r.Interface(0)
	if link.Name != "a/c0" || link.Comment != "alice/net back" {
		t.Errorf("interface %+v", link)
	}
	out, back := pings(t, r, before)
	if out != 3 || back != 3 {
		t.Errorf("%d requests out, %d replies in, want 3 and 3", out, back)
	}
	link, _ = r.Interface(0)
	if link.Statistics.PacketsReceived < 6 || link.Statistics.PacketsDropped != 0 {
		t.Errorf("statistics %+v", link.Statistics)
	}
}

// pings counts echo requests that left and replies that came.
func pings(t *testing.T, r *pcapgo.NgReader, before time.Time) (out, back int) {
	t.Helper()
	for {
		data, info, opts, err := r.ReadPacketDataWithOptions()
		if errors.Is(err, io.EOF) {
			return out, back
		}
		if err != nil {
			t.Fatal(err)
		}
		if info.Timestamp.Before(before) || time.Since(info.Timestamp) < 0 {
			t.Errorf("time stamp %v", info.Timestamp)
		}
		icmp, ok := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default).Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4)
		switch {
		case !ok:
		case icmp.TypeCode.Type() == layers.ICMPv4TypeEchoRequest && opts.Flags.Direction == pcapgo.NgEpbFlagDirectionOutbound:
			out++
		case icmp.TypeCode.Type() == layers.ICMPv4TypeEchoReply && opts.Flags.Direction == pcapgo.NgEpbFlagDirectionInbound:
			back++
		}
	}
}

// A pipe to tshark shows packets while they pass, before the capture ends.
func TestLive(t *testing.T) {
	near, _ := veth(t)
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	cmd := exec.Command(tshark, "-l", "-n", "-r", "-", "-Y", "icmp", "-T", "fields", "-e", "icmp.seq", "-e", "frame.interface_name")
	cmd.Stderr = io.Discard
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := running(t, near, Options{}, input)
	in(t, near, "ping", "-q", "-c", "1", "192.0.2.2")
	line := make([]byte, 64)
	n, err := output.Read(line) // while the capture still runs
	if err != nil || !strings.HasPrefix(string(line[:n]), "1\ta/c0") {
		t.Errorf("tshark said %q, error %v", line[:n], err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	input.Close()
	_, _ = io.Copy(io.Discard, output)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestBounds(t *testing.T) {
	near, _ := veth(t)
	var file bytes.Buffer
	done := make(chan error, 1)
	ready := &firstWrite{Writer: &file, done: make(chan struct{})}
	go func() {
		done <- Stream(t.Context(), near, "c0", "a/c0", "", Options{SnapLen: 20, MaxPackets: 2}, ready)
	}()
	<-ready.done
	in(t, near, "ping", "-q", "-c", "3", "-i", "0.01", "192.0.2.2")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for {
		data, info, err := r.ReadPacketData()
		if err != nil {
			break
		}
		count++
		if len(data) > 20 || info.Length < len(data) {
			t.Errorf("%d bytes of %d", len(data), info.Length)
		}
	}
	if count != 2 {
		t.Errorf("%d packets, want 2", count)
	}
	begun := time.Now()
	if err := Stream(t.Context(), near, "c0", "a/c0", "", Options{MaxDuration: 30 * time.Millisecond}, io.Discard); err != nil || time.Since(begun) > 20*time.Second {
		t.Errorf("error %v after %v", err, time.Since(begun))
	}
}

// A tag that the kernel carries beside the frame is in the file.
func TestTag(t *testing.T) {
	near, _ := veth(t)
	tagged := append(bytes.Repeat([]byte{0xff}, 6), 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 42, 0x88, 0xb5)
	captured := func(wait time.Duration) bool {
		var file bytes.Buffer
		stop := running(t, near, Options{}, &file)
		send(t, near, append(tagged, make([]byte, 46)...))
		time.Sleep(wait) // on a busy machine the frame is handed over later than it is sent
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(file.Bytes(), tagged)
	}
	if !captured(0) && !captured(time.Second) && !captured(5*time.Second) {
		t.Error("the tagged frame is not in the capture as it was sent")
	}
}

func send(t *testing.T, ns string, frame []byte) {
	t.Helper()
	err := inNamespace(ns, func() error {
		s, err := listen("c0", Options{SnapLen: 100})
		if err != nil {
			return err
		}
		defer s.close()
		_, err = s.file.Write(frame)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFailures(t *testing.T) {
	near, _ := veth(t)
	if err := Stream(t.Context(), near+"x", "c0", "a/c0", "", Options{}, io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no namespace: %v", err)
	}
	if err := Stream(t.Context(), near, "c9", "a/c9", "", Options{}, io.Discard); !errors.Is(err, unix.ENODEV) {
		t.Errorf("no device: %v", err)
	}
	ready := &firstWrite{Writer: io.Discard, done: make(chan struct{})}
	result := make(chan error, 1)
	go func() {
		result <- Stream(t.Context(), near, "c0", "a/c0", "", Options{MaxDuration: 10 * time.Second}, ready)
	}()
	<-ready.done
	in(t, near, "ip", "link", "delete", "c0")
	if err := <-result; !errors.Is(err, unix.ENETDOWN) {
		t.Errorf("device gone: %v", err)
	}
}
