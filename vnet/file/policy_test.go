package file

import (
	"maps"
	"os"
	"testing"
	"time"

	"sublet/vnet"
)

// The example says of each tenant what its comments say.
func TestPolicyExample(t *testing.T) {
	const path = "../../examples/policy/policy.yaml"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePolicy(path, text)
	if err != nil {
		t.Fatal(err)
	}
	day := int64(24 * time.Hour)
	usual := vnet.Quota{
		vnet.QuotaLeases: 8, vnet.QuotaNodes: 40, vnet.QuotaCPU: 4000, vnet.QuotaMemory: 16 << 30, vnet.QuotaBandwidth: 2e9,
		vnet.QuotaBandwidthTime: 50e9 * 3600, vnet.QuotaHorizon: 30 * day, vnet.QuotaLength: 7 * day,
		vnet.QuotaDefaultLength: day, vnet.QuotaAsks: 5,
	}
	for _, c := range []struct {
		who  vnet.Member
		want vnet.Quota
	}{
		{vnet.Member{Name: "zoe", UID: 1234}, nil},
		{vnet.Member{Name: "alice"}, vnet.Quota{vnet.QuotaCPU: 16000, vnet.QuotaLength: 30 * day}},
		{vnet.Member{Name: "alice", Groups: []string{"students"}}, vnet.Quota{
			vnet.QuotaCPU: 16000, vnet.QuotaLength: 30 * day, vnet.QuotaLeases: 2, vnet.QuotaBandwidth: 5e8}},
		{vnet.Member{Name: "mallory"}, vnet.Quota{vnet.QuotaLeases: 0}},
		{vnet.Member{Name: "uid20000", UID: 20000}, vnet.Quota{vnet.QuotaLeases: 1, vnet.QuotaNodes: 10}},
		{vnet.Member{Name: "bob"}, nil},
	} {
		got, allowed := p.QuotaOf(c.who)
		if want := c.want.Over(usual); !allowed || !maps.Equal(got, want) {
			t.Errorf("%s may have %v, want %v", c.who.Name, got, want)
		}
	}
	got, _ := p.QuotaOf(vnet.Member{Name: "archive"})
	if _, limited := got[vnet.QuotaLength]; limited {
		t.Errorf("archive's leases are limited to %v", got[vnet.QuotaLength])
	}
	if groups := p.GroupsOf(vnet.Member{Name: "carol"}); len(groups) != 1 || groups[0].Together[vnet.QuotaLeases] != 20 {
		t.Errorf("carol is in %v", groups)
	}
	if want := (vnet.NodeDefaults{Memory: 2 * vnet.GiB, Processes: 1024}); p.Nodes != want {
		t.Errorf("ceilings are %+v, want %+v", p.Nodes, want)
	}
}

func TestOthersAreRefused(t *testing.T) {
	p, err := ParsePolicy("f", []byte("others: refused\ntenants: [{name: alice}, {uid: 7}]\ngroups: [{name: staff}, {name: wheel, members: []}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who  vnet.Member
		want bool
	}{
		{vnet.Member{Name: "alice", UID: 1}, true}, {vnet.Member{Name: "x", UID: 7}, true},
		{vnet.Member{Name: "y", UID: 8, Groups: []string{"other", "staff"}}, true}, {vnet.Member{Name: "y", UID: 8}, false},
		{vnet.Member{Name: "y", UID: 8, Groups: []string{"wheel"}}, false},
	} {
		if quota, got := p.QuotaOf(c.who); got != c.want || quota[vnet.QuotaLeases] != 64 {
			t.Errorf("%+v: %v with %v", c.who, got, quota)
		}
	}
}
