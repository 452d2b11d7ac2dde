package openflow

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// Switches that are too busy to answer hold up nobody's samples.
func TestBusySwitchesHoldUpNobody(t *testing.T) {
	host, err := kernel.NewHost(kernel.Config{Host: "h", Run: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p := New(host)
	for _, name := range []string{"s1", "s2", "s3", "s4", "s5", "s6"} {
		dir := p.dir(plan.SwitchNamespace(vnet.LeaseID{Tenant: "t", Network: "n"}, name, vnet.SwitchOpenFlow))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", filepath.Join(dir, "socket"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	begin := time.Now()
	list, err := p.Samples(t.Context(), report.Scope{})
	if err != nil || len(list) != 0 {
		t.Errorf("%v, %v of switches that say nothing", list, err)
	}
	if took := time.Since(begin); took < sampleTime || took > 5*sampleTime {
		t.Errorf("it took %v", took)
	}
}
