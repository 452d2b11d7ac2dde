package of13

// Types of messages.
const (
	TypeHello uint8 = iota
	TypeError
	TypeEchoRequest
	TypeEchoReply
	TypeExperimenter
	TypeFeaturesRequest
	TypeFeaturesReply
	TypeGetConfigRequest
	TypeGetConfigReply
	TypeSetConfig
	TypePacketIn
	TypeFlowRemoved
	TypePortStatus
	TypePacketOut
	TypeFlowMod
	TypeGroupMod
	TypePortMod
	TypeTableMod
	TypeMultipartRequest
	TypeMultipartReply
	TypeBarrierRequest
	TypeBarrierReply
	TypeQueueGetConfigRequest
	TypeQueueGetConfigReply
	TypeRoleRequest
	TypeRoleReply
	TypeGetAsyncRequest
	TypeGetAsyncReply
	TypeSetAsync
	TypeMeterMod
)

// Reserved ports.
const (
	PortMax        uint32 = 0xffffff00
	PortInPort     uint32 = 0xfffffff8
	PortTable      uint32 = 0xfffffff9
	PortNormal     uint32 = 0xfffffffa
	PortFlood      uint32 = 0xfffffffb
	PortAll        uint32 = 0xfffffffc
	PortController uint32 = 0xfffffffd
	PortLocal      uint32 = 0xfffffffe
	PortAny        uint32 = 0xffffffff
)

// Reserved numbers of groups, meters, queues, tables, buffers and lengths.
const (
	GroupMax        uint32 = 0xffffff00
	GroupAll        uint32 = 0xfffffffc
	GroupAny        uint32 = 0xffffffff
	MeterMax        uint32 = 0xffff0000
	MeterSlowPath   uint32 = 0xfffffffd
	MeterController uint32 = 0xfffffffe
	MeterAll        uint32 = 0xffffffff
	QueueAll        uint32 = 0xffffffff
	TableMax        uint8  = 0xfe
	TableAll        uint8  = 0xff
	NoBuffer        uint32 = 0xffffffff
	NoMaxLen        uint16 = 0xffff // the whole packet
)

// Commands of a flow-mod.
const (
	FlowAdd uint8 = iota
	FlowModify
	FlowModifyStrict
	FlowDelete
	FlowDeleteStrict
)

// Flags of a flow-mod.
const (
	FlowSendRemoved   uint16 = 1
	FlowCheckOverlap  uint16 = 2
	FlowResetCounts   uint16 = 4
	FlowNoPacketCount uint16 = 8
	FlowNoByteCount   uint16 = 16
)

// Reasons of a flow-removed.
const (
	RemovedIdle uint8 = iota
	RemovedHard
	RemovedDelete
	RemovedGroup
)

// Reasons of a packet-in.
const (
	PacketNoMatch uint8 = iota
	PacketAction
	PacketInvalidTTL
)

// Commands, of groups and of meters alike.
const (
	CommandAdd uint16 = iota
	CommandModify
	CommandDelete
)

// Types of groups.
const (
	GroupTypeAll uint8 = iota
	GroupTypeSelect
	GroupTypeIndirect
	GroupTypeFailover
)

// Flags and types of bands of a meter.
const (
	MeterKBPS        uint16 = 1
	MeterPKTPS       uint16 = 2
	MeterBurst       uint16 = 4
	MeterStatsFlag   uint16 = 8
	BandDrop         uint16 = 1
	BandDSCPRemark   uint16 = 2
	BandExperimenter uint16 = 0xffff
)

// Configuration and state of a port; what a port-status tells.
const (
	PortConfigDown       uint32 = 1
	PortConfigNoRecv     uint32 = 4
	PortConfigNoFwd      uint32 = 32
	PortConfigNoPacketIn uint32 = 64
	PortStateDown        uint32 = 1
	PortStateBlocked     uint32 = 2
	PortStateLive        uint32 = 4
	PortAdded            uint8  = 0
	PortDeleted          uint8  = 1
	PortModified         uint8  = 2
)

// Roles of controllers.
const (
	RoleNoChange uint32 = iota
	RoleEqual
	RoleMaster
	RoleSlave
)

// What is done to fragments of IP, in the flags of the configuration; 0: they meet
// entries as they are.
const (
	FragDrop       uint16 = 1
	FragReassemble uint16 = 2
)
