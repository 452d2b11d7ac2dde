package file

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
)

// requests draws valid, filled requests with everything the native form says.
var requests = rapid.Custom(func(t *rapid.T) vnet.Request {
	r := vnet.Request{Network: vnet.VNetID(anyName.Draw(t, "network"))}
	if rapid.Bool().Draw(t, "owned") {
		r.Tenant = vnet.TenantID(anyName.Draw(t, "tenant"))
	}
	if rapid.Bool().Draw(t, "timed") {
		r.Start = time.Unix(0, rapid.Int64Range(1e18, 4e18).Draw(t, "start")).UTC()
	}
	if rapid.Bool().Draw(t, "bounded") {
		r.For = durations(1, vnet.MaxDuration).Draw(t, "for")
	}
	drawFreedom(t, &r)
	r.Topology = topologies(t, "n", nil)
	r.Stages = stages(t, r)
	r.Fill()
	return r
})

// drawFreedom draws what the tenant leaves open.
func drawFreedom(t *rapid.T, r *vnet.Request) {
	switch {
	case !rapid.Bool().Draw(t, "slack"):
	case r.Start.IsZero():
		r.Before = time.Unix(0, rapid.Int64Range(1e18, 4e18).Draw(t, "before")).UTC()
	default:
		r.Before = r.Start.Add(durations(0, vnet.MaxDuration).Draw(t, "slack"))
	}
	r.Movable = rapid.Bool().Draw(t, "movable")
	r.Verify = rapid.SampledFrom([]vnet.Verification{"", vnet.VerifyHandover, vnet.VerifyNone}).Draw(t, "verify")
	if n := rapid.IntRange(0, len(vnet.Axes)).Draw(t, "axes"); n > 0 {
		r.Negotiable = rapid.Permutation(vnet.Axes).Draw(t, "negotiable")[:n]
	}
}

// anyName includes names that YAML would read as something else.
var anyName = rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9_-]{0,38}[A-Za-z0-9])?`),
	rapid.SampledFrom([]string{"1", "0x1f", "true", "null", "no", "1e3", "010", "2027-03-01", "y", "12e03", "1_000"}))

func durations(low, high time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(int64(low), int64(high)).Draw(t, "duration"))
	})
}

// topologies draws nodes, routers and links named after prefix; links may also
// end at present nodes.
func topologies(t *rapid.T, prefix string, present []string) vnet.Topology {
	var top vnet.Topology
	ends := present
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		n := nodes(t, fmt.Sprintf("%s%d", prefix, i))
		if rapid.IntRange(0, 3).Draw(t, "way out") == 0 {
			top.Routers = append(top.Routers, wayOut(t, n))
			continue
		}
		if rapid.Bool().Draw(t, "router") {
			n.Protocol = rapid.SampledFrom([]vnet.Protocol{vnet.ProtocolStatic, vnet.ProtocolOSPF, vnet.ProtocolOSPF6, vnet.ProtocolBGP, vnet.ProtocolISIS, vnet.ProtocolNone}).Draw(t, "protocol")
			if n.Protocol == vnet.ProtocolBGP {
				n.AS = rapid.Uint32Range(1, vnet.MaxAS).Draw(t, "as")
				for _, a := range rapid.Permutation([]string{"10.255.0.1", "2001:db8::1"}).Draw(t, "neighbors")[:rapid.IntRange(0, 2).Draw(t, "neighbours")] {
					n.Neighbors = append(n.Neighbors, vnet.Neighbor{Address: netip.MustParseAddr(a), AS: rapid.Uint32Range(1, vnet.MaxAS).Draw(t, "their as")})
				}
			}
			if n.Protocol != vnet.ProtocolStatic && n.Kind == "" {
				n.FRR = rapid.SampledFrom([]string{"", "hostname x", "!\nrouter ospf\n network 10.0.0.0/8 area 0\n", " ip route 10.9.0.0/16 blackhole\n\n"}).Draw(t, "frr")
			}
			top.Routers = append(top.Routers, n)
		} else {
			top.Nodes = append(top.Nodes, n)
		}
		ends = append(ends, n.Name)
	}
	if len(ends) < 2 {
		return top
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "links") {
		pair := rapid.Permutation(ends).Draw(t, "ends")
		l := vnet.VirtualLink{Ends: [2]string{pair[0], pair[1]}, Bandwidth: demands(t), Labels: labels(t)}
		if rapid.Bool().Draw(t, "numbered") { // in subnets that no other link has
			l.Addresses[0] = []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{192, prefix[0], byte(16*len(prefix) + i), 1}), 24)}
			if rapid.Bool().Draw(t, "twice") {
				l.Addresses[1] = []netip.Prefix{netip.PrefixFrom(l.Addresses[0][0].Addr().Next(), 24), netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 4: prefix[0], byte(len(prefix)), byte(i), 15: 1}), 64)}
			}
		}
		if rapid.Bool().Draw(t, "own interface") {
			l.Interfaces[1] = fmt.Sprintf("own%s%d", prefix, i)
		}
		if rapid.Bool().Draw(t, "named") {
			l.Name = fmt.Sprintf("l%s%d", prefix, i)
		}
		if rapid.Bool().Draw(t, "close") {
			l.Latency = durations(0, vnet.MaxLatency).Draw(t, "latency")
		}
		if rapid.Bool().Draw(t, "split") {
			l.Paths = rapid.IntRange(2, vnet.MaxPaths).Draw(t, "paths")
			l.Spread = durations(0, vnet.MaxLatency).Draw(t, "spread")
			l.Order = rapid.SampledFrom([]vnet.PathOrder{vnet.OrderByFlow, vnet.OrderKept}).Draw(t, "order")
		}
		if rapid.Bool().Draw(t, "impaired") {
			l.Impair = impairments(t)
		}
		for _, n := range top.Routers {
			if slices.Contains(l.Ends[:], n.Name) && n.Protocol.Speaks(true) == vnet.ProtocolOSPF {
				l.Area, l.Cost = rapid.Uint32().Draw(t, "area"), rapid.IntRange(0, vnet.MaxCost).Draw(t, "cost")
			}
		}
		l.Down = rapid.Bool().Draw(t, "down")
		top.Links = append(top.Links, l)
	}
	return top
}

// wayOut is a node as a way out.
func wayOut(t *rapid.T, n vnet.VirtualNode) vnet.VirtualNode {
	n.Site, n.Host, n.Exclusive, n.Setup = "", "", false, vnet.Setup{}
	n.Protocol, n.NAT = vnet.ProtocolStatic, anyName.Draw(t, "nat")
	for i := range rapid.IntRange(0, 3).Draw(t, "published") {
		port := rapid.Uint16Range(1, 65535)
		n.Publish = append(n.Publish, vnet.Publish{Outside: uint16(1000 + i), Node: n.Name, Port: port.Draw(t, "port"), UDP: rapid.Bool().Draw(t, "udp")})
	}
	return n
}

func impairments(t *rapid.T) [2]vnet.Impairment {
	one := func() (i vnet.Impairment) {
		share := func(what string) vnet.Share {
			return vnet.Share(rapid.Int64Range(0, int64(vnet.WholeShare)).Draw(t, what))
		}
		i.Loss, i.Corrupt, i.Duplicate = share("loss"), share("corrupt"), share("duplicate")
		if i.Delay = durations(0, vnet.MaxImpairmentDelay).Draw(t, "delay"); i.Delay > 0 {
			i.Reorder, i.Jitter = share("reorder"), durations(0, i.Delay).Draw(t, "jitter")
		}
		if i.Jitter > 0 {
			i.Distribution = rapid.SampledFrom(append(vnet.Distributions, "")).Draw(t, "distribution")
		}
		return i
	}
	forward := one()
	if rapid.Bool().Draw(t, "symmetric") {
		return [2]vnet.Impairment{forward, forward}
	}
	return [2]vnet.Impairment{forward, one()}
}

func nodes(t *rapid.T, name string) vnet.VirtualNode {
	n := vnet.VirtualNode{Name: name, Labels: labels(t), Exclusive: rapid.Bool().Draw(t, "exclusive")}
	if rapid.Bool().Draw(t, "sized") {
		n.CPU = vnet.CPU(rapid.Int64Range(vnet.MinCPU, int64(vnet.MaxCPU)).Draw(t, "cpu"))
		n.Memory = vnet.Bytes(rapid.Int64Range(int64(vnet.MinMemory), int64(vnet.MaxMemory)).Draw(t, "memory"))
	}
	if rapid.Bool().Draw(t, "placed") {
		n.Site, n.Host = anyName.Draw(t, "site"), vnet.HostID(anyName.Draw(t, "host"))
	}
	if rapid.Bool().Draw(t, "addressed") {
		// Unique, because the name is.
		n.Address = netip.AddrFrom4([4]byte{10, name[0], byte(len(name)), name[len(name)-1]})
	}
	if n.Setup = setupOf(t); n.Memory < vnet.MinRunMemory && n.Memory > 0 {
		n.Run = nil
	}
	return n
}

func labels(t *rapid.T) map[string]string {
	if !rapid.Bool().Draw(t, "labelled") {
		return nil
	}
	text := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09 :#-'\"{}[],&*!|>%@`é日<<~")), 0, 12, -1)
	return rapid.MapOfN(text.Filter(func(s string) bool { return s != "" }), text, 1, 3).Draw(t, "labels")
}

func rates(t *rapid.T, low vnet.Rate) vnet.Rate {
	return vnet.Rate(rapid.Int64Range(int64(low), int64(vnet.MaxRate)).Draw(t, "rate"))
}

func bandwidths(t *rapid.T) vnet.Bandwidth {
	switch rapid.IntRange(0, 5).Draw(t, "form") {
	case 0:
		return vnet.Bandwidth{}
	case 1:
		return vnet.Static(rates(t, vnet.MinRate))
	case 2:
		return vnet.Bandwidth{Max: rates(t, vnet.MinRate)}
	case 3:
		return vnet.Bandwidth{Min: rates(t, vnet.MinRate), Max: vnet.Unbounded}
	case 4:
		return vnet.Bandwidth{Max: vnet.Unbounded}
	}
	low := rates(t, vnet.MinRate)
	return vnet.Bandwidth{Min: low, Max: rates(t, low)}
}

func demands(t *rapid.T) [2]vnet.Bandwidth {
	forward := bandwidths(t)
	if rapid.Bool().Draw(t, "symmetric") {
		return [2]vnet.Bandwidth{forward, forward}
	}
	return [2]vnet.Bandwidth{forward, bandwidths(t)}
}

// stages draws changes that keep to the rules.
func stages(t *rapid.T, r vnet.Request) []vnet.Stage {
	var after time.Duration
	for i := range rapid.IntRange(0, 3).Draw(t, "stages") {
		after += durations(1, 24*time.Hour).Draw(t, "after")
		if r.For > 0 && after >= r.For {
			break
		}
		r.Fill()
		s := vnet.Stage{Name: fmt.Sprintf("s%d", i), After: after}
		if rapid.Bool().Draw(t, "on command") {
			s.OnCommand, s.After = true, 0
		}
		top := r.At(i - 1)
		var ends []string
		for j, n := range top.All() {
			if j > 0 && rapid.Bool().Draw(t, "remove") {
				s.Remove = append(s.Remove, n.Name)
			} else if n.NAT == "" { // best effort may not end at a way out
				ends = append(ends, n.Name)
			}
		}
		if rapid.Bool().Draw(t, "add") {
			s.Add = topologies(t, string(rune('p'+i)), ends)
		}
		r.Stages = append(r.Stages, s)
		r.Fill()
		for _, l := range r.At(i).Links {
			if rapid.Bool().Draw(t, "change") {
				if s.Links == nil {
					s.Links = make(map[string][2]vnet.Bandwidth)
				}
				s.Links[l.Name] = demands(t)
			}
			if rapid.Bool().Draw(t, "impair") {
				put(&s.Impair, l.Name, impairments(t))
			}
			if rapid.Bool().Draw(t, "fails") {
				put(&s.Down, l.Name, rapid.Bool().Draw(t, "down"))
			}
		}
		r.Stages[i].Links, r.Stages[i].Impair, r.Stages[i].Down = s.Links, s.Impair, s.Down
	}
	return r.Stages
}

func TestRequestComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := requests.Draw(t, "request")
		if err := r.Check(); err != nil {
			t.Fatalf("the generator makes a bad request: %v", err)
		}
		text, err := FormatRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseRequest("f", text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(got, r) {
			t.Fatalf("wrote %+v\n%s\nread %+v", r, text, got)
		}
		again, err := FormatRequest(got)
		if err != nil || string(again) != string(text) {
			t.Fatalf("written twice: %v\n%s\n%s", err, text, again)
		}
	})
}

func waysOut(t *rapid.T, i int) vnet.NAT {
	first := netip.AddrFrom4([4]byte{192, 0, byte(i), 10})
	n := vnet.NAT{
		Name: fmt.Sprintf("w%d", i), Host: "h0", Interface: "eth9", Capacity: rates(t, vnet.MinRate), Via: netip.AddrFrom4([4]byte{192, 0, byte(i), 1}),
		Pool: vnet.AddrRange{First: first, Last: rapid.SampledFrom([]netip.Addr{first, first.Next()}).Draw(t, "last")},
	}
	if rapid.Bool().Draw(t, "publish") {
		n.Publish.First = rapid.Uint16Range(1, 65535).Draw(t, "first port")
		n.Publish.Last = rapid.Uint16Range(n.Publish.First, 65535).Draw(t, "last port")
	}
	if rapid.Bool().Draw(t, "refuse") {
		n.Refuse = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.1.1/32")}
	}
	return n
}

func TestSubstrateComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s vnet.Substrate
		for i := range rapid.IntRange(2, 5).Draw(t, "hosts") {
			s.Hosts = append(s.Hosts, vnet.SubstrateNode{
				Name: vnet.HostID(fmt.Sprintf("h%d", i)), Site: anyName.Draw(t, "site"),
				CPU: vnet.CPU(rapid.Int64Range(0, int64(vnet.MaxCPU)).Draw(t, "cpu")), Memory: vnet.Bytes(rapid.Int64Range(0, int64(vnet.MaxMemory)).Draw(t, "memory")),
			})
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "links") {
			l := vnet.SubstrateLink{
				Ends: [2]string{"h0", "h1"}, Capacity: rates(t, vnet.MinRate), Share: rapid.IntRange(0, 100).Draw(t, "share"),
				Latency: durations(0, vnet.MaxLatency).Draw(t, "latency"), MTU: rapid.SampledFrom([]int{0, vnet.MinMTU, 9000}).Draw(t, "mtu"),
			}
			if rapid.Bool().Draw(t, "ports") {
				l.Ports[i%2] = vnet.Port{Interface: "eth0", Address: netip.AddrFrom4([4]byte{10, byte(i), 0, 1})}
			}
			s.Links = append(s.Links, l)
		}
		for i := range rapid.IntRange(0, 2).Draw(t, "ways out") {
			s.NAT = append(s.NAT, waysOut(t, i))
		}
		s.Fill()
		text, err := FormatSubstrate(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseSubstrate("f", text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(got, s) {
			t.Fatalf("wrote %+v\n%s\nread %+v", s, text, got)
		}
	})
}

// linesAreSound says that every line of an error names a place of the file f
// and can be shown on a terminal.
func linesAreSound(text string) bool {
	lines := strings.Split(text, "\n")
	return len(lines) <= vnet.MostProblems && !strings.ContainsAny(text, "\r\x1b") &&
		!slices.ContainsFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "f:") })
}

// Whatever the text, the reader returns a request that comes back or a few
// lines that each begin with a place.
func FuzzParseRequest(f *testing.F) {
	f.Add([]byte("network: n\nnodes: [{name: a}, {name: b}]\nlinks: [{ends: [a, b], min: 1Mbit, reverse: {}}]\n"))
	f.Add([]byte("network: n\nrouters: [{name: r}]\nstages: [{name: s, after: 1h, add: {nodes: [{name: x}]}, remove: [r]}]\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseRequest("f", text)
		if err != nil {
			var input *vnet.InputError
			if !errors.As(err, &input) || !linesAreSound(err.Error()) || input.Line < 1 || input.Column < 1 {
				t.Fatalf("error %q", err)
			}
			return
		}
		written, err := FormatRequest(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseRequest("f", written)
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Fatalf("%v: %+v is written\n%s\nread %+v", err, r, written, again)
		}
	})
}

// setupOf draws what a node is given.
func setupOf(t *rapid.T) (s vnet.Setup) {
	s.Image = rapid.SampledFrom([]string{"", "web.tar", "docker.io/library/alpine:3.20"}).Draw(t, "image")
	if rapid.Bool().Draw(t, "keep") {
		s.State, s.Disk = vnet.StateKeep, rapid.SampledFrom([]vnet.Bytes{0, 64 * vnet.MiB, 2 * vnet.GiB}).Draw(t, "disk")
	}
	words := rapid.SliceOfN(rapid.StringMatching(`[^\x00]{1,20}`), 1, 4)
	for range rapid.IntRange(0, 3).Draw(t, "programs") {
		p := vnet.Program{Cmd: words.Draw(t, "cmd"), Restart: rapid.SampledFrom(append(vnet.Restarts, "")).Draw(t, "restart"), User: rapid.SampledFrom([]string{"", "daemon", "33:33"}).Draw(t, "user")}
		if p.Entrypoint = s.Image != "" && rapid.Bool().Draw(t, "entry point"); p.Entrypoint && rapid.Bool().Draw(t, "its arguments") {
			p.Cmd = nil
		}
		switch rapid.IntRange(0, 3).Draw(t, "ready") {
		case 1:
			p.Ready.Port = rapid.IntRange(1, 65535).Draw(t, "port")
		case 2:
			p.Ready.Cmd = words.Draw(t, "probe")
		case 3:
			p.Ready.Line = rapid.StringMatching(`[^\x00]{1,20}`).Draw(t, "line")
		}
		s.Run = append(s.Run, p)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "files") {
		text := rapid.StringMatching(`[^\x00]{0,10}([ \t]{0,2}[a-z#]{0,3}\n{0,2}){0,5}`).Draw(t, "text")
		s.Files = append(s.Files, vnet.File{Path: fmt.Sprint("/etc/f", i), Text: text, Mode: rapid.SampledFrom([]string{"", "0755", "600"}).Draw(t, "mode"), Owner: rapid.SampledFrom([]string{"", "33", "daemon:100"}).Draw(t, "owner")})
	}
	if rapid.Bool().Draw(t, "given") {
		s.Env = map[string]string{"A": rapid.StringMatching(`[^\x00]{0,20}`).Draw(t, "value"), "_b2": "2"}
		s.Workdir, s.User, s.Sysctls = "/srv", rapid.SampledFrom([]string{"", "www-data", "1000", "1000:audio"}).Draw(t, "user"), map[string]string{"net.ipv4.tcp_ecn": "1"}
	}
	return s
}
