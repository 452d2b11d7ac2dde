package nsh

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sublet/internal/stall"
)

// carried is what one stream of TCP that nobody paces gets from a to b, in bit/s.
func (g *testGround) carried() (float64, error) {
	server := g.command(g.b, "iperf3 -s -1 -B 192.168.7.2 -p 5201")
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer func() { server.Process.Kill(); server.Wait() }()
	var out []byte
	eventually(g.t, "iperf3 ends", func() bool {
		var err error
		out, err = g.command(g.a, "timeout 10 iperf3 -c 192.168.7.2 -p 5201 -t 3 -O 1 -J --connect-timeout 500").Output()
		return err == nil
	})
	var said struct {
		End struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	err := json.Unmarshal(out, &said)
	return said.End.Received.Rate, err
}

// shaped has what comes from a wait for a rate before it goes to h2.
func shaped(p1 Plane, rate uint64) Plane {
	p1.Functions = []Function{{Name: "rate", Kind: Shape, Rate: rate}}
	p1.Hops[0].Function = "rate"
	return p1
}

// What a stream of TCP sends above a rate waits, so that it gets the rate; what the queue
// has no room for is counted. The rate changes while it is used. The devices are observed,
// mended, and go with the last rate.
func TestQueueOfARate(t *testing.T) {
	g := newGround(t)
	p1, p2 := g.planes()
	const frame, segment = 1464.0, 1398.0
	for _, rate := range []uint64{20e6, 60e6} {
		g.set(shaped(p1, rate), p2)
		stall.Try(t, func() (float64, error) {
			got, err := g.carried()
			if err != nil {
				t.Fatal(err)
			}
			part := got / (float64(rate) * segment / frame)
			if part < 0.93 || part > 1.02 {
				return 1 - part, fmt.Errorf("a stream gets %.1f %% of %d bit/s", 100*part, rate)
			}
			return 0, nil
		})
	}
	eventually(t, "what came left or had no room", func() bool {
		c := g.h1.hop(t, there, 255)
		return c.Packets > 0 && c.Packets == c.Returned+c.Drops["limited"]
	})
	p1 = shaped(p1, 60e6)
	p1.Remotes[0].MTU = 1340
	g.set(p1, p2)
	if g.pings(g.a, "192.168.7.2", "-M", "do", "-s", "1263") || !strings.Contains(g.in(g.a, "ip route get 192.168.7.2"), "mtu 1290") {
		t.Errorf("what is too big is not told through the queue: %s", g.in(g.a, "ip route get 192.168.7.2"))
	}
	observed := func() bool {
		planes, err := g.h1.part.Planes()
		return err == nil && len(planes) == 1 && reflect.DeepEqual(planes[0], p1)
	}
	if !observed() {
		t.Error("the plane is observed as another")
	}
	for _, damage := range []string{"tc class del dev queue classid 1:1", "ip link del queue"} {
		g.in(g.h1.Path(fabric), damage)
		if observed() {
			t.Errorf("%s is not seen", damage)
		}
		g.set(p1, p2)
		if !observed() || !g.pings(g.a, "192.168.7.2") {
			t.Errorf("%s is not mended", damage)
		}
	}
	g.set(g.planes())
	if out := g.in(g.h1.Path(fabric), "ip -o link"); strings.Contains(out, " queue") {
		t.Errorf("devices are left: %s", out)
	}
}
