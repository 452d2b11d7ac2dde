package ofswitch

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

func TestFollowed(t *testing.T) {
	for name, want := range map[string]int{"eth0": 0, "eth12": 12, "eth01": -1, "eth": -1, "eth-1": -1, "eth1024": -1, "veth1": -1, "eth1 ": -1} {
		at, ok := followed(name)
		if ok != (want >= 0) || ok && at != want {
			t.Errorf("%q is %d, %v", name, at, ok)
		}
	}
}

// Devices that come, go and come again are ports of the same numbers; who asks by
// the socket for management sees them and is no controller.
func TestPortsComeAndGo(t *testing.T) {
	if !within(t) {
		return
	}
	socket, began := filepath.Join(t.TempDir(), "socket"), time.Now()
	s, err := New(Config{
		Pipeline: pipeline.Config{DatapathID: 7, Tables: 2, Entries: 10}, Follow: true, Standalone: true, MissEntry: true, Management: socket,
		Log: func(err error) { t.Log(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		defer s.Close()
		ended <- s.Run(ctx)
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var conn net.Conn
	for end := time.Now().Add(10 * time.Second); conn == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		conn, _ = net.Dial("unix", socket)
	}
	if conn == nil {
		t.Fatal("nobody answers at the socket")
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	c, err := channel.NewClient(conn)
	if err != nil {
		t.Fatal(err)
	}
	await := func(want ...uint32) {
		t.Helper()
		var have []uint32
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			reply, err := c.Ask(&of13.MultipartRequest{Kind: of13.MultipartPortDesc})
			if err != nil {
				t.Fatal(err)
			}
			have = nil
			for _, p := range reply[0].(*of13.MultipartReply).PortDescs {
				have = append(have, p.Number)
			}
			if len(have) == len(want) && (len(want) == 0 || have[len(have)-1] == want[len(want)-1]) {
				return
			}
		}
		t.Fatalf("ports are %v instead of %v", have, want)
	}
	await()
	ip(t, "link", "add", "eth2", "type", "veth", "peer", "name", "q2")
	await(3)
	ip(t, "link", "add", "eth0", "type", "veth", "peer", "name", "q0")
	await(1, 3)
	ip(t, "link", "del", "eth2")
	await(1)
	ip(t, "link", "add", "eth2", "type", "veth", "peer", "name", "q2")
	await(1, 3)
	if n := s.hub.Connected(); n != 0 {
		t.Errorf("%d controllers are connected", n)
	}
	reply, err := c.Ask(&of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}})
	if err != nil {
		t.Fatal(err)
	}
	flows := reply[0].(*of13.MultipartReply).Flows
	if len(flows) != 2 {
		t.Errorf("%+v instead of a table-miss entry in each table", flows)
	}
	for _, f := range flows {
		if age := time.Duration(f.Life.Seconds) * time.Second; age > time.Since(began) {
			t.Errorf("an entry is %v old in a switch that is %v old", age, time.Since(began))
		}
	}
}
