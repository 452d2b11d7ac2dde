package controller_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ring is Open vSwitch with three bridges that patch ports join in a ring, and a
// station behind each, of which frames come by its management socket and leave
// into files. It needs no privileges.
//
//	1-br1-3---2-br2-1
//	   \2      3/
//	    \3    2/
//	      br3-1
type ring struct {
	t        *testing.T
	dir      string
	protocol string
	daemons  []*exec.Cmd
	seen     [4]int // bytes of a station's file
}

func newRing(t *testing.T, protocol, controller string) *ring {
	t.Helper()
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		t.Skip("Open vSwitch is not installed")
	}
	r := &ring{t: t, dir: t.TempDir(), protocol: protocol}
	r.run("ovsdb-tool", "create", r.dir+"/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
	r.daemon("ovsdb-server", r.dir+"/conf.db", "--remote=punix:"+r.dir+"/db.sock", "--unixctl="+r.dir+"/db.ctl")
	r.appears("db.sock")
	r.run("ovs-vsctl", r.db(), "--no-wait", "init")
	r.start()
	argv := []string{"--timeout=60", r.db()}
	for n := 1; n <= 3; n++ {
		br, after := fmt.Sprintf("br%d", n), n%3+1
		before := (n+1)%3 + 1
		argv = append(argv, "--", "add-br", br, "--", "set", "bridge", br, "datapath_type=dummy", "fail_mode=secure", "protocols="+protocol,
			fmt.Sprintf("other-config:datapath-id=%016x", n), "other-config:disable-in-band=true")
		argv = r.port(argv, br, fmt.Sprintf("h%d", n), 1, "type=dummy", fmt.Sprintf("options:tx_pcap=%s/h%d", r.dir, n))
		argv = r.port(argv, br, fmt.Sprintf("p%d%d", n, before), 2, "type=patch", fmt.Sprintf("options:peer=p%d%d", before, n))
		argv = r.port(argv, br, fmt.Sprintf("p%d%d", n, after), 3, "type=patch", fmt.Sprintf("options:peer=p%d%d", after, n))
		argv = append(argv, "--", "set-controller", br, controller)
	}
	r.run("ovs-vsctl", argv...)
	return r
}

func (r *ring) port(argv []string, bridge, port string, number int, options ...string) []string {
	argv = append(argv, "--", "add-port", bridge, port, "--", "set", "interface", port, fmt.Sprintf("ofport_request=%d", number))
	return append(argv, options...)
}

func (r *ring) db() string { return "--db=unix:" + r.dir + "/db.sock" }

func (r *ring) start() {
	r.daemon("ovs-vswitchd", "unix:"+r.dir+"/db.sock", "--enable-dummy", "--disable-system", "--unixctl="+r.dir+"/vs.ctl")
	r.appears("vs.ctl")
}

// restart kills the switch: its entries are gone.
func (r *ring) restart() {
	d := r.daemons[len(r.daemons)-1]
	_ = d.Process.Kill()
	_ = d.Wait()
	_ = os.Remove(r.dir + "/vs.ctl")
	for n := range r.seen {
		r.seen[n] = 0
	}
	r.start()
}

func (r *ring) environment() []string {
	return append(os.Environ(), "OVS_RUNDIR="+r.dir, "OVS_LOGDIR="+r.dir, "OVS_DBDIR="+r.dir)
}

func (r *ring) run(name string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = r.environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}

func (r *ring) daemon(name string, args ...string) {
	r.t.Helper()
	cmd := exec.Command(name, append(args, "-vconsole:off")...)
	cmd.Env = r.environment()
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.daemons = append(r.daemons, cmd)
	r.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}

func (r *ring) appears(socket string) {
	r.t.Helper()
	eventually(r.t, func() error {
		conn, err := net.Dial("unix", filepath.Join(r.dir, socket))
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// ofctl is a command on a bridge.
func (r *ring) ofctl(command string, bridge int, more ...string) string {
	r.t.Helper()
	return r.run("ovs-ofctl", append([]string{"-O", r.protocol, command, fmt.Sprintf("unix:%s/br%d.mgmt", r.dir, bridge)}, more...)...)
}

// paths are the entries of a bridge between stations.
func (r *ring) paths(bridge int) (entries []string) {
	for line := range strings.Lines(r.ofctl("dump-flows", bridge)) {
		if strings.Contains(line, "priority=100") {
			entries = append(entries, line[strings.Index(line, "priority=100"):])
		}
	}
	return entries
}

// station is the address of one.
func station(n int) string { return fmt.Sprintf("02000000000%d", n) }

const everybody = "ffffffffffff"

// send sends a frame of a station, with a number in it.
func (r *ring) send(from int, to string, number uint32) {
	r.t.Helper()
	frame := to + station(from) + "88b5" + hex.EncodeToString(binary.BigEndian.AppendUint32(nil, number)) + strings.Repeat("00", 42)
	r.run("ovs-appctl", "-t", r.dir+"/vs.ctl", "netdev-dummy/receive", fmt.Sprintf("h%d", from), frame)
}

// received are the numbers of the frames that came to a station since it was asked
// last. Frames of discovery are none.
func (r *ring) received(n int) (numbers []uint32) {
	r.t.Helper()
	const head, record = 24, 16
	text, err := os.ReadFile(fmt.Sprintf("%s/h%d", r.dir, n))
	if err != nil {
		r.t.Fatal(err)
	}
	at := max(r.seen[n], head)
	for at+record <= len(text) {
		size := int(binary.LittleEndian.Uint32(text[at+8:]))
		if at+record+size > len(text) {
			break
		}
		if frame := text[at+record : at+record+size]; hex.EncodeToString(frame[12:14]) == "88b5" {
			numbers = append(numbers, binary.BigEndian.Uint32(frame[14:]))
		}
		at += record + size
	}
	r.seen[n] = at
	return numbers
}

// comes waits for a frame, which is sent again until it comes, and gives how often
// it came at the most.
func (r *ring) comes(from, to int, number uint32) {
	r.t.Helper()
	eventually(r.t, func() error {
		r.send(from, station(to), number)
		for range 20 {
			for _, n := range r.received(to) {
				if n == number {
					return nil
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		return fmt.Errorf("frame %d does not come from %d to %d", number, from, to)
	})
}

func eventually(t *testing.T, try func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		err := try()
		if err == nil {
			return time.Since(begin)
		}
		if time.Since(begin) > 60*time.Second {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
