package ofswitch

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/report"
)

// A switch tells which controllers are connected, in what role, what it holds, what went
// to controllers, and where its time goes.
func TestStatus(t *testing.T) { onBoth(t, statusIsTold) }

func statusIsTold(t *testing.T, inKernel bool) {
	far := wires(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent.Close() // nobody listens there any more
	c := runningAs(t, func(c *Config) {
		c.Kernel, c.PacketIns = inKernel, 10
		c.Controllers = append(c.Controllers, channel.Target{Address: silent.Addr().String()})
	})
	c.send(&of13.Role{Role: of13.RoleMaster, Generation: 1}, output(of13.PortController), &of13.GroupMod{Group: 1})
	for n := range int64(100) {
		far[0].write(numbered(n), nil)
	}
	var s report.OpenFlowStatus
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if s = c.status(); s.PacketIns.Sent+s.PacketIns.OverRate >= 100 && s.Controllers[1].Why != "" && s.Stages.Frames > 0 || time.Now().After(end) {
			break
		}
		far[0].write(numbered(0), nil) // until one comes in a turn that is timed
	}
	if s.Datapath != datapathName(inKernel) || s.Entries != (report.Share{Used: 1, Most: 100}) || s.Groups != (report.Share{Used: 1, Most: 4}) || s.Meters != (report.Share{Most: 4}) {
		t.Errorf("it holds %+v", s)
	}
	if s.PacketIns.Sent < 10 || s.PacketIns.OverRate < 50 {
		t.Errorf("packet-ins %+v", s.PacketIns)
	}
	if own := s.Controllers[0]; !own.Connected || own.Role != "master" || own.Version != "1.3" || own.For <= 0 || own.Why != "" {
		t.Errorf("the controller is %+v", own)
	}
	if other := s.Controllers[1]; other.Connected || other.Target != "tcp:"+silent.Addr().String() || !strings.Contains(other.Why, "refused") {
		t.Errorf("the controller that is not there is %+v", other)
	}
	if st := s.Stages; st.Polling <= 0 || st.IO <= 0 || st.Rules <= 0 || st.Actions <= 0 || st.Overhead <= 0 || st.Frames == 0 {
		t.Errorf("stages %+v", st)
	}
}

func (c *controller) status() (s report.OpenFlowStatus) {
	c.t.Helper()
	c.send(&of13.MultipartRequest{Kind: of13.MultipartExperimenter, Experimenter: channel.Experimenter, ExpType: channel.KindStatus})
	if err := json.Unmarshal(c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Data, &s); err != nil {
		c.t.Fatal(err)
	}
	return s
}
