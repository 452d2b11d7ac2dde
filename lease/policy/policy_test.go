package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sublet/vnet"
)

var noon = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// leases is a book of them.
type leases []Holding

func (l leases) Holdings(has func(vnet.TenantID) bool) (list []Holding) {
	for _, h := range l {
		if has(h.Tenant) {
			list = append(list, h)
		}
	}
	return list
}

// request is of two nodes with a core each and a link of 10 Mbit/s both ways.
func request(start, length time.Duration) vnet.Request {
	ten := vnet.Static(10 * vnet.Mbit)
	r := vnet.Request{Network: "net", Tenant: "alice", For: length, Topology: vnet.Topology{
		Nodes: []vnet.VirtualNode{{Name: "a", CPU: 1000, Memory: vnet.GiB}, {Name: "b", CPU: 1000}},
		Links: []vnet.VirtualLink{{Name: "ab", Ends: [2]string{"a", "b"}, Bandwidth: [2]vnet.Bandwidth{ten, ten}}},
	}}
	if start != 0 {
		r.Start = noon.Add(start)
	}
	r.Fill()
	return r
}

// leadsOut is a request with one of each that leads out of the substrate.
func leadsOut(start, length time.Duration) vnet.Request {
	r := request(start, length)
	r.Nodes = append(r.Nodes, vnet.VirtualNode{Name: "laptop", Join: "any"}, vnet.VirtualNode{Name: "probe", Device: "tester"})
	r.Routers = append(r.Routers, vnet.VirtualNode{Name: "out", NAT: "any", Publish: []vnet.Publish{{Outside: 8080, Node: "a", Port: 80}, {Outside: 8081, Node: "b", Port: 80}}})
	r.Switches = append(r.Switches, vnet.VirtualSwitch{Name: "office", Access: "campus"})
	ten := vnet.Static(10 * vnet.Mbit)
	for _, ends := range [][2]string{{"laptop", "office"}, {"a", "out"}, {"b", "office"}, {"probe", "office"}} {
		r.Links = append(r.Links, vnet.VirtualLink{Name: ends[0] + "-" + ends[1], Ends: ends, Bandwidth: [2]vnet.Bandwidth{ten, ten}})
	}
	r.Fill()
	return r
}

func held(start, length time.Duration) Holding { return of(noon, request(start, length)) }

// himself has no groups and no subordinates.
func himself(t vnet.TenantID) vnet.Member { return vnet.Member{Name: t} }

func terms(q vnet.Quota) Terms {
	return Of(vnet.Policy{Others: vnet.OthersAllowed, Default: q}, vnet.Member{Name: "alice"}, himself)
}

func TestCheck(t *testing.T) {
	const h = time.Hour
	movable := request(h, h)
	movable.Before = noon.Add(5 * h)
	stages := request(0, 4*h)
	stages.Stages = []vnet.Stage{{Name: "less", After: h, Remove: []string{"b"}}}
	for _, c := range []struct {
		name   string
		quota  vnet.Quota
		held   leases
		asked  vnet.Request
		reason string // "": within the quota
		offer  string // its changes; "": none
	}{
		{"nothing is limited", nil, nil, request(0, 0), "", ""},
		{"nodes of another time do not count", vnet.Quota{vnet.QuotaNodes: 2}, leases{held(0, h)}, request(h, h), "", ""},
		{"nodes of the same time do", vnet.Quota{vnet.QuotaNodes: 3}, leases{held(0, h)}, request(h-1, h),
			"quota nodes of alice is 3: 2 used, 2 asked", "start 2027-03-01T13:00:00Z instead of 2027-03-01T12:59:59Z"},
		{"processors are free when what has them ends", vnet.Quota{vnet.QuotaCPU: 3000}, leases{held(0, h), held(h, h)}, request(0, h),
			"quota cpu of alice is 3: 2 used, 2 asked", "start 2027-03-01T14:00:00Z instead of now"},
		{"what leads out is counted", vnet.Quota{vnet.QuotaWaysOut: 1, vnet.QuotaPublish: 2, vnet.QuotaExits: 0, vnet.QuotaJoins: 0, vnet.QuotaDevices: 0},
			leases{of(noon, leadsOut(0, h))}, leadsOut(0, h),
			"quota ways_out of alice is 1: 1 used, 1 asked; quota publish of alice is 2: 2 used, 2 asked; quota exits of alice is 0: 1 used, 1 asked; " +
				"quota joins of alice is 0: 1 used, 1 asked; quota devices of alice is 0: 1 used, 1 asked", ""},
		{"what leads out is free when it ends", vnet.Quota{vnet.QuotaWaysOut: 1}, leases{of(noon, leadsOut(0, h))}, leadsOut(0, h),
			"quota ways_out of alice is 1: 1 used, 1 asked", "start 2027-03-01T13:00:00Z instead of now"},
		{"too much alone", vnet.Quota{vnet.QuotaBandwidth: 19e6}, nil, request(0, h), "quota bandwidth of alice is 19Mbit: 0bit used, 20Mbit asked", ""},
		{"the number of leases is not one of an instant", vnet.Quota{vnet.QuotaLeases: 1}, leases{held(5*h, h)}, request(0, h),
			"quota leases of alice is 1: 1 used, 1 asked", ""},
		{"longer than the longest", vnet.Quota{vnet.QuotaLength: int64(2 * h)}, nil, request(0, 3*h),
			"quota length of alice is 2h: 3h asked", "duration 2h instead of 3h"},
		{"until released is longer than any", vnet.Quota{vnet.QuotaLength: int64(2 * h)}, nil, request(0, 0),
			"quota length of alice is 2h: no end asked", "duration 2h instead of until released"},
		{"beyond the horizon", vnet.Quota{vnet.QuotaHorizon: int64(3 * h)}, nil, request(4*h, h),
			"quota horizon of alice is 3h: 4h asked", "start 2027-03-01T15:00:00Z instead of 2027-03-01T16:00:00Z"},
		{"the latest start counts", vnet.Quota{vnet.QuotaHorizon: int64(3 * h)}, nil, movable,
			"quota horizon of alice is 3h: 5h asked", "start 2027-03-01T13:00:00Z to 2027-03-01T15:00:00Z instead of 2027-03-01T13:00:00Z to 2027-03-01T17:00:00Z"},
		{"what may be postponed counts as long as it may last", vnet.Quota{vnet.QuotaNodes: 3}, leases{held(5*h, h)}, movable,
			"quota nodes of alice is 3: 2 used, 2 asked", "start 2027-03-01T18:00:00Z instead of 2027-03-01T13:00:00Z to 2027-03-01T17:00:00Z"},
		{"stages count as they are", vnet.Quota{vnet.QuotaNodes: 3}, leases{held(h, h)}, stages, "", ""},
		{"bits that are booked", vnet.Quota{vnet.QuotaBandwidthTime: 20e6 * 3600 * 3}, leases{held(5*h, h)}, request(0, 3*h),
			"quota bandwidth_time of alice is 60Mbit*h: 20Mbit*h used, 60Mbit*h asked", "duration 2h instead of 3h"},
		{"bits that have passed do not count", vnet.Quota{vnet.QuotaBandwidthTime: 20e6 * 3600 * 3}, leases{held(-h, h)}, request(0, 3*h), "", ""},
		{"bits without end", vnet.Quota{vnet.QuotaBandwidthTime: 20e6 * 3600 * 3}, nil, request(0, 0),
			"quota bandwidth_time of alice is 60Mbit*h: 0bit*h used, no end asked", "duration 3h instead of until released"},
	} {
		got := terms(c.quota).Check(noon, c.held, c.asked)
		if c.reason == "" {
			if got != nil {
				t.Errorf("%s: %v", c.name, got)
			}
			continue
		}
		if got == nil || !strings.Contains(strings.Join(got.Reasons, "; "), c.reason) || changes(got) != c.offer || (c.offer == "") != (got.Never != "") {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func changes(r *vnet.Rejection) string {
	var words []string
	for _, c := range r.Changes {
		words = append(words, c.What+" "+c.To+" instead of "+c.From)
	}
	return strings.Join(words, ", ")
}

func TestOffersKeepTheirAxes(t *testing.T) {
	r := request(0, 3*time.Hour)
	r.Negotiable = []vnet.Axis{vnet.AxisStart}
	if got := terms(vnet.Quota{vnet.QuotaLength: int64(time.Hour)}).Check(noon, leases{}, r); got == nil || got.Offer != nil {
		t.Errorf("whose length is not negotiable is offered another: %+v", got)
	}
}

func TestFill(t *testing.T) {
	limits := terms(vnet.Quota{vnet.QuotaDefaultLength: int64(time.Hour)})
	for asked, want := range map[time.Duration]time.Duration{0: time.Hour, time.Minute: time.Minute} {
		r := request(0, asked)
		if limits.Fill(&r); r.For != want {
			t.Errorf("%s became %s", asked, r.For)
		}
	}
}

// Members of a group share what the group has, and have no more each.
func TestGroups(t *testing.T) {
	p := vnet.Policy{Others: vnet.OthersRefused, Groups: []vnet.GroupPolicy{
		{Name: "lab", Members: []vnet.TenantID{"alice", "bob"}, Each: vnet.Quota{vnet.QuotaNodes: 4}, Together: vnet.Quota{vnet.QuotaNodes: 6}},
	}}
	of := func(tenant vnet.TenantID) Holding {
		h := held(0, time.Hour)
		h.Tenant = tenant
		return h
	}
	alice := Of(p, himself("alice"), himself)
	for _, c := range []struct {
		held leases
		want string
	}{
		{leases{of("alice"), of("carol"), of("carol")}, ""},
		{leases{of("alice"), of("alice")}, "quota nodes of alice is 4: 4 used, 2 asked"},
		{leases{of("alice"), of("bob"), of("bob")}, "quota nodes of group lab is 6: 6 used, 2 asked"},
	} {
		got := alice.Check(noon, c.held, request(0, time.Hour))
		if (got == nil) != (c.want == "") || got != nil && !slices.Equal(got.Reasons, []string{c.want}) {
			t.Errorf("%v, want %q", got, c.want)
		}
	}
	if got := Of(p, himself("carol"), himself).Check(noon, leases{}, request(0, time.Hour)); got == nil || got.Offer != nil {
		t.Errorf("one whom the policy does not name: %+v", got)
	}
}

// What subordinate users have is charged to whom they belong to.
func TestSubordinates(t *testing.T) {
	owner := func(t vnet.TenantID) vnet.Member {
		if strings.HasPrefix(string(t), "uid") {
			t = "alice"
		}
		return vnet.Member{Name: t}
	}
	limits := Of(vnet.Policy{Others: vnet.OthersAllowed, Default: vnet.Quota{vnet.QuotaLeases: 2}}, owner("uid165536"), owner)
	held := leases{held(0, time.Hour), {Tenant: "uid165537", Window: vnet.Window{Start: noon}, Uses: []Use{{}}}}
	if got := limits.Check(noon, held, request(0, time.Hour)); got == nil {
		t.Error("three leases of two allowed")
	}
	if got := limits.Check(noon, held[:1], request(0, time.Hour)); got != nil {
		t.Error(got)
	}
}

// What is refused is beyond a limit at some instant, and what is admitted at
// none; what is offered is admitted.
func TestAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hours := func(from int, name string) time.Duration {
			return time.Duration(rapid.IntRange(from, 6).Draw(t, name)) * time.Hour
		}
		var book leases
		for range rapid.IntRange(0, 5).Draw(t, "leases") {
			h := held(hours(0, "start"), hours(0, "length"))
			h.Uses = append(h.Uses, Use{After: hours(1, "after"), Amounts: Amounts{int64(rapid.IntRange(0, 4).Draw(t, "nodes"))}})
			book = append(book, h)
		}
		asked := request(hours(0, "start"), hours(0, "length"))
		most := int64(rapid.IntRange(0, 8).Draw(t, "most"))
		limits := terms(vnet.Quota{vnet.QuotaNodes: most})
		refusal := limits.Check(noon, book, asked)
		if want := mostBooked(book, of(noon, asked)) > most; want != (refusal != nil) {
			t.Fatalf("limit %d, refused: %v", most, refusal)
		}
		if refusal != nil && refusal.Offer != nil {
			if again := limits.Check(noon, book, *refusal.Offer); again != nil {
				t.Fatalf("the offer is refused: %v", again)
			}
		}
	})
}

// mostBooked adds nodes up hour by hour, for a week.
func mostBooked(book leases, asked Holding) (most int64) {
	for i := range 7 * 24 {
		at, total := noon.Add(time.Duration(i)*time.Hour), int64(0)
		if !asked.Window.Contains(at) {
			continue
		}
		for _, h := range append(slices.Clone(book), asked) {
			if !h.Window.Contains(at) {
				continue
			}
			for j := len(h.Uses) - 1; j >= 0; j-- {
				if !at.Before(h.Window.Start.Add(h.Uses[j].After)) {
					total += h.Uses[j].Amounts[0]
					break
				}
			}
		}
		most = max(most, total)
	}
	return most
}

func TestUsage(t *testing.T) {
	list := terms(vnet.Quota{vnet.QuotaNodes: 9}).Usage(noon, leases{held(0, time.Hour), held(2*time.Hour, time.Hour), held(2*time.Hour, 0)})
	if len(list) != 1 || list[0].Now[vnet.QuotaNodes] != 2 || list[0].Peak[vnet.QuotaNodes] != 4 ||
		list[0].Now[vnet.QuotaLeases] != 3 || list[0].Now[vnet.QuotaBandwidthTime] != vnet.Unlimited || list[0].Quota[vnet.QuotaNodes] != 9 {
		t.Errorf("%+v", list)
	}
}
