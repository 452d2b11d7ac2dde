package test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sublet/vnet"
	"sublet/vnet/file"
)

// TestClassesOfTraffic: in the example of three sites bulk between two of them gets
// what is leased by the third, other packets go straight, and 13 Mbit/s between sites
// are enough. Bulk goes straight while a link of its way is down, and when the request
// has no class any more.
func TestClassesOfTraffic(t *testing.T) {
	l := newLab(t, "demo")
	text, err := os.ReadFile(examples + "classes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	request, err := file.ParseRequest("classes.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	var between vnet.Rate
	for _, link := range request.Links {
		if strings.HasPrefix(link.Ends[0], "r") {
			between += link.Bandwidth[vnet.Forward].Min
		}
	}
	if between != 13*vnet.Mbit {
		t.Errorf("%s are leased between sites, not 13Mbit", between)
	}
	l.must("up", examples+"classes.yaml")
	for _, port := range []string{"5001", "5101"} {
		l.must("exec", "sites/s3", "--", "iperf3", "-s", "-D", "-p", port)
	}
	const bulk, other = "5001", "5101"
	l.gets(bulk, false, 3*vnet.Mbit, 5*vnet.Mbit)
	l.gets(bulk, true, 3*vnet.Mbit, 5*vnet.Mbit)
	l.gets(other, false, 300*vnet.Kbit, vnet.Mbit)
	if out := l.must("exec", "sites/s1", "--", "ping", "-c", "1", "s3"); !strings.Contains(out, "ttl=62") {
		t.Errorf("other packets do not go straight: %s", out)
	}

	l.must("link", "down", "sites/bulk23")
	l.gets(bulk, false, 300*vnet.Kbit, vnet.Mbit)
	l.must("link", "up", "sites/bulk23")
	l.gets(bulk, false, 3*vnet.Mbit, 5*vnet.Mbit)

	// What its tenant takes away is put back.
	l.must("exec", "sites/r1", "--", "ip", "rule", "del", "pref", "15500")
	eventually(t, 20*time.Second, func() error {
		if out := l.must("exec", "sites/r1", "--", "ip", "rule"); !strings.Contains(out, "15500:") {
			return fmt.Errorf("the rule is not put back: %s", out)
		}
		return nil
	})

	plain := strings.NewReplacer(", class: bulk", "", "classes:\n  - {name: bulk, match: {proto: tcp, dst_port: 5001-5009}}\n", "").Replace(string(text))
	l.must("apply", l.file("plain.yaml", plain))
	l.must("wait", "sites")
	if out := l.must("exec", "sites/r1", "--", "sh", "-c", "ip rule; ip route show table 15500 2>&1; true"); strings.Contains(out, "155") {
		t.Errorf("a network without classes has rules of one: %s", out)
	}
	l.settled()
}

// gets waits until one stream from s1 to s3, or back, gets a rate between two.
func (l *lab) gets(port string, back bool, least, most vnet.Rate) {
	l.t.Helper()
	args := []string{"exec", "sites/s1", "--", "iperf3", "-J", "-t", "2", "-c", "s3", "-p", port}
	if back {
		args = append(args, "-R")
	}
	eventually(l.t, 40*time.Second, func() error {
		r := l.sublet(args...)
		var got struct {
			End struct {
				Received struct {
					Rate float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			} `json:"end"`
		}
		if err := json.Unmarshal([]byte(r.out), &got); err != nil {
			return fmt.Errorf("iperf3: %w: %s%s", err, r.out, r.err)
		}
		if rate := vnet.Rate(got.End.Received.Rate); rate < least || rate > most {
			return fmt.Errorf("port %s gets %s, not %s to %s", port, rate, least, most)
		}
		return nil
	})
}
