package embed

import (
	"testing"
	"time"

	"sublet/embed/calendar"
	"sublet/embed/verify"
	"sublet/vnet"
)

// TestVerifyFinds: every rule, when a valid mapping is made to break it.
func TestVerifyFinds(t *testing.T) {
	w := vnet.Window{Start: epoch}
	valid := func() (vnet.Substrate, *calendar.Calendar, vnet.Request, vnet.Mapping) {
		r := pair(vnet.VirtualNode{Name: "n1", Site: "lyon", CPU: vnet.Core, Memory: vnet.GiB}, vnet.VirtualNode{Name: "n2", Host: "h3"}, both(vnet.Static(vnet.Gbit)))
		r.Links[0].Latency = 12 * time.Millisecond
		m := vnet.Mapping{Nodes: map[string]vnet.HostID{"n1": "h1", "n2": "h3"}, Links: map[string]vnet.Path{"back": {"h1-s1", "s1-s2", "h3-s2"}}}
		return lyonNancy(), calendar.New(), r, m
	}
	book := func(c *calendar.Calendar, key string, amount int64) {
		if err := c.Book(calendar.Booking{Key: key, Amount: amount, Window: vnet.Window{Start: epoch.Add(time.Hour), End: epoch.Add(2 * time.Hour)}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, spoil := range map[string]func(*vnet.Substrate, *calendar.Calendar, *vnet.Request, *vnet.Mapping){
		"no host":  func(_ *vnet.Substrate, _ *calendar.Calendar, _ *vnet.Request, m *vnet.Mapping) { delete(m.Nodes, "n1") },
		"a switch": func(_ *vnet.Substrate, _ *calendar.Calendar, _ *vnet.Request, m *vnet.Mapping) { m.Nodes["n1"] = "s1" },
		"other site": func(_ *vnet.Substrate, _ *calendar.Calendar, r *vnet.Request, _ *vnet.Mapping) {
			r.Nodes[0].Site = "nancy"
		},
		"other host": func(_ *vnet.Substrate, _ *calendar.Calendar, r *vnet.Request, _ *vnet.Mapping) {
			r.Nodes[1].Host = "h2"
		},
		"no path": func(_ *vnet.Substrate, _ *calendar.Calendar, _ *vnet.Request, m *vnet.Mapping) {
			delete(m.Links, "back")
		},
		"short path": func(_ *vnet.Substrate, _ *calendar.Calendar, _ *vnet.Request, m *vnet.Mapping) {
			m.Links["back"] = m.Links["back"][:2]
		},
		"empty path": func(_ *vnet.Substrate, _ *calendar.Calendar, _ *vnet.Request, m *vnet.Mapping) {
			m.Links["back"] = vnet.Path{}
		},
		"path at home": func(_ *vnet.Substrate, _ *calendar.Calendar, _ *vnet.Request, m *vnet.Mapping) { m.Nodes["n1"] = "h3" },
		"link twice": func(_ *vnet.Substrate, _ *calendar.Calendar, _ *vnet.Request, m *vnet.Mapping) {
			m.Links["back"] = append(vnet.Path{"h1-s1", "h1-s1"}, m.Links["back"]...)
		},
		"latency": func(_ *vnet.Substrate, _ *calendar.Calendar, r *vnet.Request, _ *vnet.Mapping) { r.Links[0].Latency-- },
		"cpu": func(_ *vnet.Substrate, c *calendar.Calendar, _ *vnet.Request, _ *vnet.Mapping) {
			book(c, "cpu:h1", 3001)
		},
		"memory": func(_ *vnet.Substrate, c *calendar.Calendar, _ *vnet.Request, _ *vnet.Mapping) {
			book(c, "memory:h1", int64(3*vnet.GiB)+1)
		},
		"held": func(_ *vnet.Substrate, c *calendar.Calendar, _ *vnet.Request, _ *vnet.Mapping) {
			book(c, "guests:h3", WholeHost)
		},
		"wanted alone": func(_ *vnet.Substrate, c *calendar.Calendar, r *vnet.Request, _ *vnet.Mapping) {
			r.Nodes[0].Exclusive = true
			book(c, "guests:h1", 1)
		},
		"forward": func(_ *vnet.Substrate, c *calendar.Calendar, _ *vnet.Request, _ *vnet.Mapping) { book(c, "s1-s2>", 1) },
		"reverse": func(_ *vnet.Substrate, c *calendar.Calendar, _ *vnet.Request, _ *vnet.Mapping) {
			book(c, "h3-s2>", int64(vnet.Gbit)+1)
		},
		"share": func(s *vnet.Substrate, _ *calendar.Calendar, _ *vnet.Request, _ *vnet.Mapping) { s.Links[2].Share = 99 },
		"a later stage": func(_ *vnet.Substrate, _ *calendar.Calendar, r *vnet.Request, _ *vnet.Mapping) {
			r.Stages = []vnet.Stage{{After: time.Hour, Links: map[string][2]vnet.Bandwidth{"back": {vnet.Static(vnet.Gbit + 1)}}}}
		},
	} {
		sub, cal, r, m := valid()
		if err := verify.Mapping(sub, cal, r, w, m); err != nil {
			t.Fatal(err)
		}
		if spoil(&sub, cal, &r, &m); verify.Mapping(sub, cal, r, w, m) == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// TestVerifyKnowsTheFabric: a path around the fabric's fixed one is found.
func TestVerifyKnowsTheFabric(t *testing.T) {
	sub := lyonNancy()
	sub.Switches = append(sub.Switches, "s3")
	for _, s := range []string{"s1", "s2"} {
		sub.Links = append(sub.Links, vnet.SubstrateLink{Name: s + "-s3", Ends: [2]string{s, "s3"}, Capacity: vnet.Gbit})
	}
	r := pair(vnet.VirtualNode{Name: "n1", Host: "h1"}, vnet.VirtualNode{Name: "n2", Host: "h3"}, vnet.VirtualLink{})
	m := vnet.Mapping{Nodes: map[string]vnet.HostID{"n1": "h1", "n2": "h3"}, Links: map[string]vnet.Path{"back": {"h1-s1", "s1-s2", "h3-s2"}}}
	if err := verify.Mapping(sub, calendar.New(), r, vnet.Window{Start: epoch}, m); err != nil {
		t.Fatal(err)
	}
	m.Links["back"] = vnet.Path{"h1-s1", "s1-s3", "s2-s3", "h3-s2"}
	if verify.Mapping(sub, calendar.New(), r, vnet.Window{Start: epoch}, m) == nil {
		t.Error("a path around the fabric's is valid")
	}
}
