package ofswitch

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"sublet/openflow/of13"
)

// mostWaiting is how many frames it is given at once.
const mostWaiting = 6

// openVSwitch is its process, with ports that are none of the kernel's: frames
// come by its management socket and leave into files.
type openVSwitch struct {
	t       *testing.T
	dir     string
	manage  net.Conn
	replies *json.Decoder
	left    [samePorts]*os.File
	waiting []string // frames of the port
	port    int
	given   [samePorts]uint64
}

// newOpenVSwitch is nil where it is not installed.
func newOpenVSwitch(t *testing.T) *subject {
	t.Helper()
	if _, err := exec.LookPath("ovs-vswitchd"); err != nil {
		t.Log("Open vSwitch is not installed")
		return nil
	}
	o := &openVSwitch{t: t, dir: t.TempDir()}
	o.start()
	conn := o.dial("br0.mgmt")
	k := &controller{t: t, Conn: conn}
	k.SetDeadline(time.Now().Add(sameTime()))
	k.send(&of13.Hello{Bitmap: 1 << of13.Version})
	s := &subject{name: "Open vSwitch", short: true}
	s.overChannel(k)
	do := s.do
	s.settle = func() {
		if o.given[o.port] += uint64(len(o.waiting)); len(o.waiting) == 0 {
			return
		}
		o.flush()
		one := &of13.MultipartRequest{Kind: of13.MultipartPort, Number: uint32(o.port + 1)}
		for do(one).(*of13.MultipartReply).Ports[0].RxPackets < o.given[o.port] { // it drops more than 100 packet-ins
			time.Sleep(100 * time.Microsecond)
		}
	}
	s.do = func(list ...of13.Message) of13.Message {
		s.settle()
		_, changes := list[0].(*of13.MultipartRequest)
		reply := do(list...)
		if !changes { // its cache follows behind the barrier's reply
			o.ask("revalidator/purge")
		}
		return reply
	}
	s.receive = func(port int, frame []byte) {
		if port != o.port || len(o.waiting) == mostWaiting {
			s.settle()
		}
		o.port, o.waiting = port, append(o.waiting, hex.EncodeToString(frame))
	}
	s.current = func() { s.settle(); o.ask("revalidator/purge"); s.do(&of13.Plain{Kind: of13.TypeBarrierRequest}) }
	s.gather = func() { o.gather(s) }
	return s
}

// start starts the database and the switch, and gives it three ports.
func (o *openVSwitch) start() {
	o.t.Helper()
	db, sock := filepath.Join(o.dir, "conf.db"), filepath.Join(o.dir, "db.sock")
	o.run("ovsdb-tool", "create", db, "/usr/share/openvswitch/vswitch.ovsschema")
	o.daemon("ovsdb-server", db, "--remote=punix:"+sock, "--unixctl="+o.dir+"/db.ctl")
	o.dial("db.sock").Close()
	o.run("ovs-vsctl", "--db=unix:"+sock, "--no-wait", "init")
	o.daemon("ovs-vswitchd", "unix:"+sock, "--enable-dummy", "--disable-system", "--unixctl="+o.dir+"/vs.ctl")
	argv := []string{"--timeout=30", "--db=unix:" + sock, "set", "Open_vSwitch", ".", "other_config:vlan-limit=2", "--", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", "protocols=OpenFlow13", "fail_mode=secure", "other-config:disable-in-band=true"}
	for n := 1; n <= samePorts; n++ {
		name := fmt.Sprintf("p%d", n)
		argv = append(argv, "--", "add-port", "br0", name, "--", "set", "interface", name, "type=dummy", fmt.Sprintf("ofport_request=%d", n), "options:tx_pcap="+o.dir+"/"+name)
	}
	o.run("ovs-vsctl", argv...)
	o.manage = o.dial("vs.ctl")
	o.manage.SetDeadline(time.Now().Add(sameTime()))
	o.replies = json.NewDecoder(o.manage)
	for n := range o.left {
		f, err := os.Open(filepath.Join(o.dir, fmt.Sprintf("p%d", n+1)))
		if err != nil {
			o.t.Fatal(err)
		}
		o.t.Cleanup(func() { f.Close() })
		f.Seek(24, io.SeekStart) // the file's header
		o.left[n] = f
	}
}

func (o *openVSwitch) environment() []string {
	return append(os.Environ(), "OVS_RUNDIR="+o.dir, "OVS_LOGDIR="+o.dir, "OVS_DBDIR="+o.dir)
}

func (o *openVSwitch) run(name string, args ...string) {
	o.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = o.environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		o.t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// daemon runs until the test ends.
func (o *openVSwitch) daemon(name string, args ...string) {
	o.t.Helper()
	cmd := exec.Command(name, append(args, "-vconsole:off")...)
	cmd.Env = o.environment()
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

// dial connects to a socket that may not be there yet.
func (o *openVSwitch) dial(name string) net.Conn {
	o.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", filepath.Join(o.dir, name))
		if err == nil {
			o.t.Cleanup(func() { conn.Close() })
			return conn
		}
		if time.Now().After(end) {
			o.t.Fatal(err)
		}
	}
}

// ask sends a command of its management, and waits for the answer.
func (o *openVSwitch) ask(method string, params ...string) {
	o.t.Helper()
	if params == nil {
		params = []string{}
	}
	b, err := json.Marshal(map[string]any{"id": 0, "method": method, "params": params})
	if err == nil {
		_, err = o.manage.Write(b)
	}
	var reply struct{ Result, Error any }
	if err == nil {
		err = o.replies.Decode(&reply)
	}
	if err != nil || reply.Error != nil {
		o.t.Fatalf("%s %v: %v, %v", method, params, err, reply.Error)
	}
}

// flush hands over the frames of a port.
func (o *openVSwitch) flush() {
	if len(o.waiting) > 0 {
		o.ask("netdev-dummy/receive", append([]string{fmt.Sprintf("p%d", o.port+1)}, o.waiting...)...)
		o.waiting = o.waiting[:0]
	}
}

// gather reads what was captured, as far as it is whole.
func (o *openVSwitch) gather(s *subject) {
	for n, f := range o.left {
		for {
			at, _ := f.Seek(0, io.SeekCurrent)
			var head [16]byte
			if _, err := io.ReadFull(f, head[:]); err != nil {
				f.Seek(at, io.SeekStart)
				break
			}
			frame := make([]byte, binary.NativeEndian.Uint32(head[8:]))
			if _, err := io.ReadFull(f, frame); err != nil {
				f.Seek(at, io.SeekStart)
				break
			}
			s.left(n+1, frame)
		}
	}
}
