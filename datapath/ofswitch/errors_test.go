package ofswitch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// refusal is what a switch refuses: messages that it does, and one that it does not; or
// why it is not here.
type refusal struct {
	before []of13.Message
	m      of13.Message
	wrong  func(raw []byte) // changes its bytes
	never  string           // why no switch of ours sends it
	within string           // ROOM.TEST that has it, where the wire is not enough
}

func at16(place int, v uint16) func([]byte) {
	return func(raw []byte) { binary.BigEndian.PutUint16(raw[place:], v) }
}

func at8(place int, v uint8) func([]byte) { return func(raw []byte) { raw[place] = v } }

// Places in a flow-mod without fields in its match, and with one: the match, its first
// field, the first instruction, its first action.
const placeMatch, placeField, placeInstruction, placeAction = 48, 52, 56, 64

func entry(table uint8, list ...of13.Instruction) *of13.FlowMod {
	return &of13.FlowMod{Table: table, Priority: 1, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny, Instructions: list}
}

func doing(actions ...of13.Action) *of13.FlowMod {
	return entry(1, of13.Instruction{Type: of13.InstructionApply, Actions: actions})
}

func matching(fields ...of13.Field) *of13.FlowMod {
	m := entry(1)
	m.Match.Fields = fields
	return m
}

func with[M any](m *M, change func(*M)) *M { change(m); return m }

func bundled(xid uint32, b of13.Bundle, m of13.Message) of13.Message {
	if m != nil {
		b.Add = true
		b.Message, _ = of13.Append(nil, xid, m)
	}
	return b.Experimenter()
}

func bucketsOf(actions ...of13.Action) []of13.Bucket {
	return []of13.Bucket{{WatchPort: of13.PortAny, WatchGroup: of13.GroupAny, Actions: actions}}
}

// lastXID is that of the message that is refused.
const lastXID = 1000

const noExperimenter = "there is nothing of experimenters of that kind"

// refusals has every error of the specification and of its extension for bundles.
func refusals() map[of13.Error]refusal {
	tcp := []of13.Field{of13.Exact(of13.EthType, 0x0800), of13.Exact(of13.IPProto, 6), of13.Exact(of13.TCPDst, 80)}
	drop := []of13.Band{{Kind: of13.BandDrop, Rate: 1}}
	clear, barrier := of13.Instruction{Type: of13.InstructionClear}, &of13.Plain{Kind: of13.TypeBarrierRequest}
	pop := of13.Action{Type: of13.ActionPopVLAN}
	group := func(n uint32, more func(*of13.GroupMod)) *of13.GroupMod {
		m := &of13.GroupMod{Group: n}
		if more != nil {
			more(m)
		}
		return m
	}
	meter := func(n uint32, more func(*of13.MeterMod)) *of13.MeterMod {
		m := &of13.MeterMod{Meter: n, Bands: drop}
		if more != nil {
			more(m)
		}
		return m
	}
	port := func(more func(*of13.PortMod)) *of13.PortMod {
		return with(&of13.PortMod{Port: 1, HWAddr: [6]byte{2, 0, 0, 0, 1, 1}}, more)
	}
	many := func(n int, make func(uint32) of13.Message) (list []of13.Message) {
		for i := range n {
			list = append(list, make(uint32(i)))
		}
		return list
	}
	features := func(list ...of13.TableFeatures) *of13.MultipartRequest {
		return &of13.MultipartRequest{Kind: of13.MultipartTableFeatures, TableFeatures: list}
	}
	open := of13.Bundle{ID: 1}.Experimenter()
	return map[of13.Error]refusal{
		of13.BadRequestBadVersion:        {m: barrier, wrong: at8(0, 5)},
		of13.BadRequestBadType:           {m: barrier, wrong: at8(1, 99)},
		of13.BadRequestBadMultipart:      {m: &of13.MultipartRequest{}, wrong: at16(8, 99)},
		of13.BadRequestBadExperimenter:   {m: &of13.Experimenter{Experimenter: 0x2320, Kind: 10}},
		of13.BadRequestBadExpType:        {m: &of13.Experimenter{Experimenter: of13.ONF, Kind: 7}},
		of13.BadRequestEPerm:             {within: "openflow/slice.TestWhatLeadsOutIsRefused"},
		of13.BadRequestBadLen:            {m: &of13.Role{}, wrong: at16(2, 20)},
		of13.BadRequestBufferEmpty:       {within: "openflow/pipeline.TestPacketsAreKeptForControllers"},
		of13.BadRequestBufferUnknown:     {m: &of13.PacketOut{Buffer: 5, InPort: of13.PortController}},
		of13.BadRequestBadTableID:        {m: &of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: 77}}},
		of13.BadRequestIsSlave:           {before: []of13.Message{&of13.Role{Role: of13.RoleSlave, Generation: 1}}, m: entry(0)},
		of13.BadRequestBadPort:           {m: &of13.MultipartRequest{Kind: of13.MultipartPort, Number: 77}},
		of13.BadRequestBadPacket:         {m: &of13.PacketOut{Buffer: of13.NoBuffer, InPort: of13.PortController}},
		of13.BadRequestMultipartOverflow: {m: &of13.MultipartRequest{Kind: of13.MultipartFlow, Flags: of13.MultipartMore, Flow: of13.FlowRequest{Table: of13.TableAll}}},

		of13.BadActionBadType:           {m: doing(pop), wrong: at16(placeAction, 5)},
		of13.BadActionBadLen:            {m: doing(pop), wrong: at16(placeAction+2, 16)},
		of13.BadActionBadExperimenter:   {m: doing(of13.Action{Type: of13.ActionExperimenter})},
		of13.BadActionBadExpType:        {within: "openflow/pipeline.TestServiceRefusals"},
		of13.BadActionBadOutPort:        {m: doing(of13.Output(of13.PortAny))},
		of13.BadActionBadArgument:       {m: doing(of13.Action{Type: of13.ActionPushVLAN, EtherType: 0x0800})},
		of13.BadActionEPerm:             {within: "openflow/slice.TestWhatLeadsOutIsRefused"},
		of13.BadActionTooMany:           {never: "there are as many actions as a message has room for"},
		of13.BadActionBadQueue:          {never: "set_queue to one that is not there changes nothing (7.2.5: queues are configured elsewhere)"},
		of13.BadActionBadOutGroup:       {m: doing(of13.Action{Type: of13.ActionGroup, Number: 9})},
		of13.BadActionMatchInconsistent: {m: doing(of13.SetField(of13.Exact(of13.TCPDst, 1)))},
		of13.BadActionUnsupportedOrder:  {never: "every order is done"},
		of13.BadActionBadTag:            {never: "the tag of a push is BAD_ARGUMENT"},
		of13.BadActionBadSetType:        {m: doing(of13.SetField(of13.Exact(of13.InPort, 1)))},
		of13.BadActionBadSetLen:         {m: doing(of13.SetField(of13.Exact(of13.EthSrc, 1))), wrong: at8(placeAction+7, 4)},
		of13.BadActionBadSetArgument:    {m: doing(of13.SetField(of13.Exact(of13.IPECN, 4)))},

		of13.BadInstructionUnknownInst:       {m: entry(1, clear), wrong: at16(placeInstruction, 77)},
		of13.BadInstructionUnsupInst:         {m: entry(1, clear, clear)},
		of13.BadInstructionBadTableID:        {m: entry(1, of13.Instruction{Type: of13.InstructionGoto, Table: 1})},
		of13.BadInstructionUnsupMetadata:     {never: "all 64 bits are supported; what a table may not is a matter of its mask"},
		of13.BadInstructionUnsupMetadataMask: {within: "openflow/pipeline.TestTablesAreRestricted"},
		of13.BadInstructionBadExperimenter:   {m: entry(1, clear), wrong: at16(placeInstruction, 0xffff)},
		of13.BadInstructionBadExpType:        {never: noExperimenter},
		of13.BadInstructionBadLen:            {m: entry(1, clear), wrong: at16(placeInstruction+2, 16)},
		of13.BadInstructionEPerm:             {never: "whoever controls a switch may do everything with it"},

		of13.BadMatchBadType:       {m: matching(tcp...), wrong: at16(placeMatch, 0)},
		of13.BadMatchBadLen:        {m: matching(tcp...), wrong: at16(placeMatch+2, 9999)},
		of13.BadMatchBadTag:        {never: "a tag that is no tag is BAD_VALUE"},
		of13.BadMatchBadDLAddrMask: {never: "every mask of addresses is supported"},
		of13.BadMatchBadNWAddrMask: {never: "every mask of addresses is supported"},
		of13.BadMatchBadWildcards:  {m: matching(of13.Field{ID: of13.EthDst, Masked: true, Value: of13.U128{Lo: 1}, Mask: of13.U128{Lo: 2}})},
		of13.BadMatchBadField:      {m: matching(tcp...), wrong: at16(placeField, 1)},
		of13.BadMatchBadValue:      {m: matching(of13.Exact(of13.VLANVID, 5))},
		of13.BadMatchBadMask:       {m: matching(tcp...), wrong: at8(placeField+2, uint8(of13.EthType)<<1|1)},
		of13.BadMatchBadPrereq:     {m: matching(tcp[1:]...)},
		of13.BadMatchDupField:      {m: matching(tcp[0], tcp[0])},
		of13.BadMatchEPerm:         {never: "whoever controls a switch may do everything with it"},

		of13.FlowModFailedUnknown:    {never: "every refusal has a reason"},
		of13.FlowModFailedTableFull:  {before: many(40, func(n uint32) of13.Message { return with(entry(0), func(m *of13.FlowMod) { m.Priority = uint16(n) }) }), m: entry(1)},
		of13.FlowModFailedBadTableID: {m: entry(of13.TableAll)},
		of13.FlowModFailedOverlap:    {before: []of13.Message{entry(0)}, m: with(entry(0), func(m *of13.FlowMod) { m.Flags = of13.FlowCheckOverlap })},
		of13.FlowModFailedEPerm:      {within: "openflow/slice.TestWhatLeadsOutIsRefused"},
		of13.FlowModFailedBadTimeout: {never: "every time is supported"},
		of13.FlowModFailedBadCommand: {m: with(entry(0), func(m *of13.FlowMod) { m.Command = 9 })},
		of13.FlowModFailedBadFlags:   {m: with(entry(0), func(m *of13.FlowMod) { m.Flags = 128 })},

		of13.GroupModFailedGroupExists:         {before: []of13.Message{group(1, nil)}, m: group(1, nil)},
		of13.GroupModFailedInvalidGroup:        {m: group(of13.GroupAll, nil)},
		of13.GroupModFailedWeightUnsupported:   {m: group(2, func(m *of13.GroupMod) { m.Buckets = []of13.Bucket{{Weight: 2}} })},
		of13.GroupModFailedOutOfGroups:         {before: many(6, func(n uint32) of13.Message { return group(n+1, nil) }), m: group(9, nil)},
		of13.GroupModFailedOutOfBuckets:        {m: group(2, func(m *of13.GroupMod) { m.Buckets = make([]of13.Bucket, 2000) })},
		of13.GroupModFailedChainingUnsupported: {never: "groups lead to groups"},
		of13.GroupModFailedWatchUnsupported:    {never: "ports and groups are watched"},
		of13.GroupModFailedLoop:                {m: group(1, func(m *of13.GroupMod) { m.Buckets = bucketsOf(of13.Action{Type: of13.ActionGroup, Number: 1}) })},
		of13.GroupModFailedUnknownGroup:        {m: group(2, func(m *of13.GroupMod) { m.Command = of13.CommandModify })},
		of13.GroupModFailedChainedGroup: {
			before: []of13.Message{group(1, nil), group(2, func(m *of13.GroupMod) { m.Buckets = bucketsOf(of13.Action{Type: of13.ActionGroup, Number: 1}) })},
			m:      group(1, func(m *of13.GroupMod) { m.Command = of13.CommandDelete }),
		},
		of13.GroupModFailedBadType:    {m: group(2, func(m *of13.GroupMod) { m.Kind = 4 })},
		of13.GroupModFailedBadCommand: {m: group(2, func(m *of13.GroupMod) { m.Command = 9 })},
		of13.GroupModFailedBadBucket:  {m: group(2, func(m *of13.GroupMod) { m.Buckets = []of13.Bucket{{}} }), wrong: at16(16, 8)},
		of13.GroupModFailedBadWatch:   {m: group(2, func(m *of13.GroupMod) { m.Kind, m.Buckets = of13.GroupTypeFailover, bucketsOf() })},
		of13.GroupModFailedEPerm:      {never: "whoever controls a switch may do everything with it"},

		of13.PortModFailedBadPort:      {m: &of13.PortMod{Port: 77}},
		of13.PortModFailedBadHWAddr:    {m: &of13.PortMod{Port: 1}},
		of13.PortModFailedBadConfig:    {m: port(func(m *of13.PortMod) { m.Mask = 2 })},
		of13.PortModFailedBadAdvertise: {m: port(func(m *of13.PortMod) { m.Advertise = 1 << 11 })},
		of13.PortModFailedEPerm:        {within: "openflow/slice.TestWhatLeadsOutIsRefused"},

		of13.TableModFailedBadTable:  {m: &of13.TableMod{Table: 9}},
		of13.TableModFailedBadConfig: {m: &of13.TableMod{Table: 1, Config: 64}},
		of13.TableModFailedEPerm:     {never: "whoever controls a switch may do everything with it"},

		of13.QueueOpFailedBadPort:  {m: &of13.QueueConfigRequest{Port: 77}},
		of13.QueueOpFailedBadQueue: {m: &of13.MultipartRequest{Kind: of13.MultipartQueue, Number: 1, Queue: 5}},
		of13.QueueOpFailedEPerm:    {never: "whoever controls a switch may ask everything"},

		of13.SwitchConfigFailedBadFlags: {m: &of13.Config{Kind: of13.TypeSetConfig, Flags: of13.FragReassemble}},
		of13.SwitchConfigFailedBadLen:   {never: "a message of a wrong length is BAD_REQUEST, BAD_LEN"},
		of13.SwitchConfigFailedEPerm:    {within: "openflow/slice.TestWhatLeadsOutIsRefused"},

		of13.RoleRequestFailedStale:   {before: []of13.Message{&of13.Role{Role: of13.RoleMaster, Generation: 9}}, m: &of13.Role{Role: of13.RoleMaster, Generation: 8}},
		of13.RoleRequestFailedUnsup:   {never: "all roles are supported"},
		of13.RoleRequestFailedBadRole: {m: &of13.Role{Role: 9}},

		of13.MeterModFailedUnknown:      {never: "every refusal has a reason"},
		of13.MeterModFailedMeterExists:  {before: []of13.Message{meter(1, nil)}, m: meter(1, nil)},
		of13.MeterModFailedInvalidMeter: {m: meter(0, nil)},
		of13.MeterModFailedUnknownMeter: {m: entry(1, of13.Instruction{Type: of13.InstructionMeter, Meter: 9})},
		of13.MeterModFailedBadCommand:   {m: meter(2, func(m *of13.MeterMod) { m.Command = 9 })},
		of13.MeterModFailedBadFlags:     {m: meter(2, func(m *of13.MeterMod) { m.Flags = 3 })},
		of13.MeterModFailedBadRate:      {m: meter(2, func(m *of13.MeterMod) { m.Bands = []of13.Band{{Kind: of13.BandDrop}} })},
		of13.MeterModFailedBadBurst:     {m: meter(2, func(m *of13.MeterMod) { m.Flags = of13.MeterBurst })},
		of13.MeterModFailedBadBand:      {m: meter(2, nil), wrong: at16(16, 9)},
		of13.MeterModFailedBadBandValue: {m: meter(2, func(m *of13.MeterMod) { m.Bands = []of13.Band{{Kind: of13.BandDSCPRemark, Rate: 1, Precedence: 3}} })},
		of13.MeterModFailedOutOfMeters:  {before: many(6, func(n uint32) of13.Message { return meter(n+1, nil) }), m: meter(9, nil)},
		of13.MeterModFailedOutOfBands:   {m: meter(2, func(m *of13.MeterMod) { m.Bands = slices.Repeat(drop, 2000) })},

		of13.TableFeaturesFailedBadTable:    {m: features(of13.TableFeatures{Table: 9})},
		of13.TableFeaturesFailedBadMetadata: {never: "all 64 bits of metadata are supported"},
		of13.TableFeaturesFailedBadType:     {m: features(of13.TableFeatures{Properties: []of13.TableProperty{{}}}), wrong: at16(80, 99)},
		of13.TableFeaturesFailedBadLen:      {m: features(of13.TableFeatures{}), wrong: at16(16, 20)},
		of13.TableFeaturesFailedBadArgument: {m: features(of13.TableFeatures{Table: 2}, of13.TableFeatures{Table: 2})},
		of13.TableFeaturesFailedEPerm:       {m: features(of13.TableFeatures{Table: 1})},

		of13.HelloFailedIncompatible: {within: "datapath/ofswitch.TestGreetingsThatAreRefused"},
		of13.HelloFailedEPerm:        {never: "everyone who reaches the switch may greet it"},

		of13.BundleFailedBadID:     {m: of13.Bundle{ID: 1, Kind: of13.BundleCommit}.Experimenter()},
		of13.BundleFailedExists:    {before: []of13.Message{open}, m: open},
		of13.BundleFailedClosed:    {before: []of13.Message{open, of13.Bundle{ID: 1, Kind: of13.BundleClose}.Experimenter()}, m: of13.Bundle{ID: 1, Kind: of13.BundleClose}.Experimenter()},
		of13.BundleFailedOutOf:     {before: many(16, func(n uint32) of13.Message { return of13.Bundle{ID: n}.Experimenter() }), m: of13.Bundle{ID: 99}.Experimenter()},
		of13.BundleFailedBadType:   {m: of13.Bundle{ID: 1, Kind: 9}.Experimenter()},
		of13.BundleFailedBadFlags:  {m: of13.Bundle{ID: 1, Flags: 8}.Experimenter()},
		of13.BundleFailedMsgBadLen: {before: []of13.Message{open}, m: of13.Bundle{ID: 1, Add: true, Message: []byte{4, 14, 0, 99, 0, 0, 0, 0}}.Experimenter()},
		of13.BundleFailedMsgBadXID: {before: []of13.Message{open}, m: bundled(lastXID+1, of13.Bundle{ID: 1}, entry(0))},
		of13.BundleFailedMsgUnsup:  {before: []of13.Message{open}, m: bundled(lastXID, of13.Bundle{ID: 1}, barrier)},
		of13.BundleFailedTooMany:   {within: "openflow/channel.TestBundlesAreBounded"},
		of13.BundleFailedMsgFailed: {
			before: []of13.Message{open, bundled(lastXID-1, of13.Bundle{ID: 1}, &of13.PortMod{Port: 77})},
			m:      of13.Bundle{ID: 1, Kind: of13.BundleCommit}.Experimenter(),
		},
	}
}

// wired is tables with a connection, without devices.
type wired struct {
	tables *pipeline.Switch
	hub    *channel.Hub
}

func (w *wired) Send(uint32, uint32, []byte)             {}
func (w *wired) PacketIn(m *of13.PacketIn)               { w.hub.PacketIn(m) }
func (w *wired) FlowRemoved(m *of13.FlowRemoved)         { w.hub.FlowRemoved(m) }
func (w *wired) PortStatus(m *of13.PortStatus)           { w.hub.PortStatus(m) }
func (w *wired) Do(m of13.Message) (of13.Message, error) { return w.tables.Do(0, m) }
func (w *wired) Atomic(run func() error) error           { return w.tables.Atomic(run) }

// newWired makes one with eight tables, 40 entries, six groups and six meters, and
// connects to it.
func newWired(t *testing.T) net.Conn {
	t.Helper()
	wake := make(chan struct{}, 1)
	w := &wired{hub: channel.NewHub(func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	})}
	w.tables = pipeline.New(pipeline.Config{DatapathID: 1, Tables: 8, Entries: 40, Groups: 6, Meters: 6}, w)
	for n := range uint32(2) {
		w.tables.SetPort(0, of13.Port{Number: n + 1, HWAddr: [6]byte{2, 0, 0, 0, 1, byte(n + 1)}})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.hub.Run(ctx, channel.Target{Address: l.Addr().String()}, nil, func(error) {}); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		for ctx.Err() == nil {
			if in, ok := w.hub.Next(); ok {
				w.hub.Handle(in, w)
				continue
			}
			select {
			case <-ctx.Done():
			case <-wake:
			}
		}
	})
	t.Cleanup(func() { cancel(); l.Close(); w.hub.Close(); running.Wait() })
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(60 * time.Second))
	return conn
}

// answerTo reads until there is an error to a message or another answer to it.
func answerTo(r *bufio.Reader, xid uint32) (of13.Header, of13.Message, error) {
	for {
		head, err := r.Peek(of13.HeaderLen)
		if err != nil {
			return of13.Header{}, nil, err
		}
		raw := make([]byte, of13.ReadHeader(head).Length)
		if _, err := io.ReadFull(r, raw); err != nil {
			return of13.Header{}, nil, err
		}
		h, m, err := new(of13.Decoder).Decode(raw)
		if h.XID == xid || err != nil {
			return h, m, err
		}
	}
}

func (c refusal) check(t *testing.T, want of13.Error) {
	conn := newWired(t)
	send := func(xid uint32, m of13.Message, wrong func([]byte)) []byte {
		raw, err := of13.Append(nil, xid, m)
		if err != nil {
			t.Fatal(err)
		}
		if wrong != nil {
			wrong(raw)
		}
		if _, err := conn.Write(raw); err != nil {
			t.Fatal(err)
		}
		return raw
	}
	send(1, &of13.Hello{Bitmap: 1 << of13.Version}, nil)
	for i, m := range c.before {
		send(uint32(lastXID-len(c.before)+i), m, nil)
	}
	raw := send(lastXID, c.m, c.wrong)
	// Behind a message whose length is wrong nothing is read as it was meant.
	h, m, err := answerTo(bufio.NewReader(conn), lastXID)
	refused, is := m.(*of13.ErrorMessage)
	if err != nil || !is || of13.Error(uint32(refused.Kind)<<16|uint32(refused.Code)) != want {
		t.Fatalf("%+v %+v, %v instead of %v", h, m, err, want)
	}
	data := refused.Data
	if refused.Kind == 0xffff {
		data = data[4:] // whose error it is
	}
	if n := int(binary.BigEndian.Uint16(raw[2:])); !bytes.HasPrefix(raw, data) || len(data) != min(n, len(raw), 64) {
		t.Errorf("the error has %d bytes, % x, of the message % x", len(data), data, raw[:min(len(raw), 64)])
	}
}

// Every error that there is: a controller gets it, with the first bytes of what was
// refused, or there is a reason why it never does.
func TestEveryErrorOnTheWire(t *testing.T) {
	t.Parallel()
	all := refusals()
	declared := declaredErrors(t)
	for number, name := range declared {
		c, there := all[number]
		if !there {
			t.Errorf("%s is in no test", name)
		}
		if c.within != "" {
			hasTest(t, c.within, name)
		} else if c.never == "" && there {
			t.Run(name, func(t *testing.T) { t.Parallel(); c.check(t, number) })
		}
	}
	if len(declared) < 100 || len(all) != len(declared) {
		t.Errorf("%d errors are declared, %d are in the table", len(declared), len(all))
	}
}

// hasTest wants a test of a room, written ROOM.TEST, to be about an error.
func hasTest(t *testing.T, within, name string) {
	t.Helper()
	room, test, _ := strings.Cut(within, ".")
	files, err := filepath.Glob(filepath.Join("../..", room, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, body, found := strings.Cut(string(text), "func "+test+"(t *testing.T) {\n")
		if body, _, _ = strings.Cut(body, "\n}\n"); found && regexp.MustCompile(`\b`+name+`\b`).MatchString(body) {
			return
		}
	}
	t.Errorf("%s: %s is not about it", name, within)
}

// declaredErrors are those of openflow/of13, by name.
func declaredErrors(t *testing.T) map[of13.Error]string {
	t.Helper()
	found := make(map[of13.Error]string)
	for _, file := range []string{"errors.go", "bundle.go"} {
		text, err := os.ReadFile(filepath.Join("../../openflow/of13", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range regexp.MustCompile(`(?m)^\t(\w+) +Error = (\w+)<<16 \| (\d+)`).FindAllStringSubmatch(string(text), -1) {
			kind, err := strconv.ParseUint(d[2], 10, 16)
			if d[2] == "typeExperimenter" {
				kind, err = 0xffff, nil
			}
			code, err2 := strconv.ParseUint(d[3], 10, 16)
			if err != nil || err2 != nil {
				t.Fatalf("%v: %v, %v", d, err, err2)
			}
			found[of13.Error(kind<<16|code)] = d[1]
		}
	}
	return found
}

// Who speaks no version that is spoken here is told so, and the connection ends.
func TestGreetingsThatAreRefused(t *testing.T) {
	t.Parallel()
	conn := newWired(t)
	hello, err := of13.Append(nil, 7, &of13.Hello{Bitmap: 1 << 6})
	if err != nil {
		t.Fatal(err)
	}
	hello[0] = 6
	if _, err := conn.Write(hello); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	_, m, err := answerTo(r, 7)
	e, is := m.(*of13.ErrorMessage)
	if err != nil || !is || of13.Error(uint32(e.Kind)<<16|uint32(e.Code)) != of13.HelloFailedIncompatible {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the connection goes on: %v", fmt.Sprint(err))
	}
}
