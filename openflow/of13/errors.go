package of13

import "fmt"

// Error is the type (upper 16 bits) and code (lower 16 bits) of an error message.
type Error uint32

// Type of the error, ofp_error_type.
func (e Error) Type() uint16 { return uint16(e >> 16) }

// Code of the error, within its type.
func (e Error) Code() uint16 { return uint16(e) }

func (e Error) Error() string {
	if name, ok := errorNames[e]; ok {
		return fmt.Sprintf("OpenFlow error %s (%d/%d)", name, e.Type(), e.Code())
	}
	return fmt.Sprintf("OpenFlow error %d/%d", e.Type(), e.Code())
}

// Errors of the specification, by type.
//
//lint:file-ignore SA4016 types and codes are written as the specification's tables have them, also 0
const (
	HelloFailedIncompatible Error = 0<<16 | 0
	HelloFailedEPerm        Error = 0<<16 | 1

	BadRequestBadVersion        Error = 1<<16 | 0
	BadRequestBadType           Error = 1<<16 | 1
	BadRequestBadMultipart      Error = 1<<16 | 2
	BadRequestBadExperimenter   Error = 1<<16 | 3
	BadRequestBadExpType        Error = 1<<16 | 4
	BadRequestEPerm             Error = 1<<16 | 5
	BadRequestBadLen            Error = 1<<16 | 6
	BadRequestBufferEmpty       Error = 1<<16 | 7
	BadRequestBufferUnknown     Error = 1<<16 | 8
	BadRequestBadTableID        Error = 1<<16 | 9
	BadRequestIsSlave           Error = 1<<16 | 10
	BadRequestBadPort           Error = 1<<16 | 11
	BadRequestBadPacket         Error = 1<<16 | 12
	BadRequestMultipartOverflow Error = 1<<16 | 13

	BadActionBadType           Error = 2<<16 | 0
	BadActionBadLen            Error = 2<<16 | 1
	BadActionBadExperimenter   Error = 2<<16 | 2
	BadActionBadExpType        Error = 2<<16 | 3
	BadActionBadOutPort        Error = 2<<16 | 4
	BadActionBadArgument       Error = 2<<16 | 5
	BadActionEPerm             Error = 2<<16 | 6
	BadActionTooMany           Error = 2<<16 | 7
	BadActionBadQueue          Error = 2<<16 | 8
	BadActionBadOutGroup       Error = 2<<16 | 9
	BadActionMatchInconsistent Error = 2<<16 | 10
	BadActionUnsupportedOrder  Error = 2<<16 | 11
	BadActionBadTag            Error = 2<<16 | 12
	BadActionBadSetType        Error = 2<<16 | 13
	BadActionBadSetLen         Error = 2<<16 | 14
	BadActionBadSetArgument    Error = 2<<16 | 15

	BadInstructionUnknownInst       Error = 3<<16 | 0
	BadInstructionUnsupInst         Error = 3<<16 | 1
	BadInstructionBadTableID        Error = 3<<16 | 2
	BadInstructionUnsupMetadata     Error = 3<<16 | 3
	BadInstructionUnsupMetadataMask Error = 3<<16 | 4
	BadInstructionBadExperimenter   Error = 3<<16 | 5
	BadInstructionBadExpType        Error = 3<<16 | 6
	BadInstructionBadLen            Error = 3<<16 | 7
	BadInstructionEPerm             Error = 3<<16 | 8

	BadMatchBadType       Error = 4<<16 | 0
	BadMatchBadLen        Error = 4<<16 | 1
	BadMatchBadTag        Error = 4<<16 | 2
	BadMatchBadDLAddrMask Error = 4<<16 | 3
	BadMatchBadNWAddrMask Error = 4<<16 | 4
	BadMatchBadWildcards  Error = 4<<16 | 5
	BadMatchBadField      Error = 4<<16 | 6
	BadMatchBadValue      Error = 4<<16 | 7
	BadMatchBadMask       Error = 4<<16 | 8
	BadMatchBadPrereq     Error = 4<<16 | 9
	BadMatchDupField      Error = 4<<16 | 10
	BadMatchEPerm         Error = 4<<16 | 11

	FlowModFailedUnknown    Error = 5<<16 | 0
	FlowModFailedTableFull  Error = 5<<16 | 1
	FlowModFailedBadTableID Error = 5<<16 | 2
	FlowModFailedOverlap    Error = 5<<16 | 3
	FlowModFailedEPerm      Error = 5<<16 | 4
	FlowModFailedBadTimeout Error = 5<<16 | 5
	FlowModFailedBadCommand Error = 5<<16 | 6
	FlowModFailedBadFlags   Error = 5<<16 | 7

	GroupModFailedGroupExists         Error = 6<<16 | 0
	GroupModFailedInvalidGroup        Error = 6<<16 | 1
	GroupModFailedWeightUnsupported   Error = 6<<16 | 2
	GroupModFailedOutOfGroups         Error = 6<<16 | 3
	GroupModFailedOutOfBuckets        Error = 6<<16 | 4
	GroupModFailedChainingUnsupported Error = 6<<16 | 5
	GroupModFailedWatchUnsupported    Error = 6<<16 | 6
	GroupModFailedLoop                Error = 6<<16 | 7
	GroupModFailedUnknownGroup        Error = 6<<16 | 8
	GroupModFailedChainedGroup        Error = 6<<16 | 9
	GroupModFailedBadType             Error = 6<<16 | 10
	GroupModFailedBadCommand          Error = 6<<16 | 11
	GroupModFailedBadBucket           Error = 6<<16 | 12
	GroupModFailedBadWatch            Error = 6<<16 | 13
	GroupModFailedEPerm               Error = 6<<16 | 14

	PortModFailedBadPort      Error = 7<<16 | 0
	PortModFailedBadHWAddr    Error = 7<<16 | 1
	PortModFailedBadConfig    Error = 7<<16 | 2
	PortModFailedBadAdvertise Error = 7<<16 | 3
	PortModFailedEPerm        Error = 7<<16 | 4

	TableModFailedBadTable  Error = 8<<16 | 0
	TableModFailedBadConfig Error = 8<<16 | 1
	TableModFailedEPerm     Error = 8<<16 | 2

	QueueOpFailedBadPort  Error = 9<<16 | 0
	QueueOpFailedBadQueue Error = 9<<16 | 1
	QueueOpFailedEPerm    Error = 9<<16 | 2

	SwitchConfigFailedBadFlags Error = 10<<16 | 0
	SwitchConfigFailedBadLen   Error = 10<<16 | 1
	SwitchConfigFailedEPerm    Error = 10<<16 | 2

	RoleRequestFailedStale   Error = 11<<16 | 0
	RoleRequestFailedUnsup   Error = 11<<16 | 1
	RoleRequestFailedBadRole Error = 11<<16 | 2

	MeterModFailedUnknown      Error = 12<<16 | 0
	MeterModFailedMeterExists  Error = 12<<16 | 1
	MeterModFailedInvalidMeter Error = 12<<16 | 2
	MeterModFailedUnknownMeter Error = 12<<16 | 3
	MeterModFailedBadCommand   Error = 12<<16 | 4
	MeterModFailedBadFlags     Error = 12<<16 | 5
	MeterModFailedBadRate      Error = 12<<16 | 6
	MeterModFailedBadBurst     Error = 12<<16 | 7
	MeterModFailedBadBand      Error = 12<<16 | 8
	MeterModFailedBadBandValue Error = 12<<16 | 9
	MeterModFailedOutOfMeters  Error = 12<<16 | 10
	MeterModFailedOutOfBands   Error = 12<<16 | 11

	TableFeaturesFailedBadTable    Error = 13<<16 | 0
	TableFeaturesFailedBadMetadata Error = 13<<16 | 1
	TableFeaturesFailedBadType     Error = 13<<16 | 2
	TableFeaturesFailedBadLen      Error = 13<<16 | 3
	TableFeaturesFailedBadArgument Error = 13<<16 | 4
	TableFeaturesFailedEPerm       Error = 13<<16 | 5
)

var errorNames = map[Error]string{
	HelloFailedIncompatible:           "HelloFailedIncompatible",
	HelloFailedEPerm:                  "HelloFailedEPerm",
	BadRequestBadVersion:              "BadRequestBadVersion",
	BadRequestBadType:                 "BadRequestBadType",
	BadRequestBadMultipart:            "BadRequestBadMultipart",
	BadRequestBadExperimenter:         "BadRequestBadExperimenter",
	BadRequestBadExpType:              "BadRequestBadExpType",
	BadRequestEPerm:                   "BadRequestEPerm",
	BadRequestBadLen:                  "BadRequestBadLen",
	BadRequestBufferEmpty:             "BadRequestBufferEmpty",
	BadRequestBufferUnknown:           "BadRequestBufferUnknown",
	BadRequestBadTableID:              "BadRequestBadTableID",
	BadRequestIsSlave:                 "BadRequestIsSlave",
	BadRequestBadPort:                 "BadRequestBadPort",
	BadRequestBadPacket:               "BadRequestBadPacket",
	BadRequestMultipartOverflow:       "BadRequestMultipartOverflow",
	BadActionBadType:                  "BadActionBadType",
	BadActionBadLen:                   "BadActionBadLen",
	BadActionBadExperimenter:          "BadActionBadExperimenter",
	BadActionBadExpType:               "BadActionBadExpType",
	BadActionBadOutPort:               "BadActionBadOutPort",
	BadActionBadArgument:              "BadActionBadArgument",
	BadActionEPerm:                    "BadActionEPerm",
	BadActionTooMany:                  "BadActionTooMany",
	BadActionBadQueue:                 "BadActionBadQueue",
	BadActionBadOutGroup:              "BadActionBadOutGroup",
	BadActionMatchInconsistent:        "BadActionMatchInconsistent",
	BadActionUnsupportedOrder:         "BadActionUnsupportedOrder",
	BadActionBadTag:                   "BadActionBadTag",
	BadActionBadSetType:               "BadActionBadSetType",
	BadActionBadSetLen:                "BadActionBadSetLen",
	BadActionBadSetArgument:           "BadActionBadSetArgument",
	BadInstructionUnknownInst:         "BadInstructionUnknownInst",
	BadInstructionUnsupInst:           "BadInstructionUnsupInst",
	BadInstructionBadTableID:          "BadInstructionBadTableID",
	BadInstructionUnsupMetadata:       "BadInstructionUnsupMetadata",
	BadInstructionUnsupMetadataMask:   "BadInstructionUnsupMetadataMask",
	BadInstructionBadExperimenter:     "BadInstructionBadExperimenter",
	BadInstructionBadExpType:          "BadInstructionBadExpType",
	BadInstructionBadLen:              "BadInstructionBadLen",
	BadInstructionEPerm:               "BadInstructionEPerm",
	BadMatchBadType:                   "BadMatchBadType",
	BadMatchBadLen:                    "BadMatchBadLen",
	BadMatchBadTag:                    "BadMatchBadTag",
	BadMatchBadDLAddrMask:             "BadMatchBadDLAddrMask",
	BadMatchBadNWAddrMask:             "BadMatchBadNWAddrMask",
	BadMatchBadWildcards:              "BadMatchBadWildcards",
	BadMatchBadField:                  "BadMatchBadField",
	BadMatchBadValue:                  "BadMatchBadValue",
	BadMatchBadMask:                   "BadMatchBadMask",
	BadMatchBadPrereq:                 "BadMatchBadPrereq",
	BadMatchDupField:                  "BadMatchDupField",
	BadMatchEPerm:                     "BadMatchEPerm",
	FlowModFailedUnknown:              "FlowModFailedUnknown",
	FlowModFailedTableFull:            "FlowModFailedTableFull",
	FlowModFailedBadTableID:           "FlowModFailedBadTableID",
	FlowModFailedOverlap:              "FlowModFailedOverlap",
	FlowModFailedEPerm:                "FlowModFailedEPerm",
	FlowModFailedBadTimeout:           "FlowModFailedBadTimeout",
	FlowModFailedBadCommand:           "FlowModFailedBadCommand",
	FlowModFailedBadFlags:             "FlowModFailedBadFlags",
	GroupModFailedGroupExists:         "GroupModFailedGroupExists",
	GroupModFailedInvalidGroup:        "GroupModFailedInvalidGroup",
	GroupModFailedWeightUnsupported:   "GroupModFailedWeightUnsupported",
	GroupModFailedOutOfGroups:         "GroupModFailedOutOfGroups",
	GroupModFailedOutOfBuckets:        "GroupModFailedOutOfBuckets",
	GroupModFailedChainingUnsupported: "GroupModFailedChainingUnsupported",
	GroupModFailedWatchUnsupported:    "GroupModFailedWatchUnsupported",
	GroupModFailedLoop:                "GroupModFailedLoop",
	GroupModFailedUnknownGroup:        "GroupModFailedUnknownGroup",
	GroupModFailedChainedGroup:        "GroupModFailedChainedGroup",
	GroupModFailedBadType:             "GroupModFailedBadType",
	GroupModFailedBadCommand:          "GroupModFailedBadCommand",
	GroupModFailedBadBucket:           "GroupModFailedBadBucket",
	GroupModFailedBadWatch:            "GroupModFailedBadWatch",
	GroupModFailedEPerm:               "GroupModFailedEPerm",
	PortModFailedBadPort:              "PortModFailedBadPort",
	PortModFailedBadHWAddr:            "PortModFailedBadHWAddr",
	PortModFailedBadConfig:            "PortModFailedBadConfig",
	PortModFailedBadAdvertise:         "PortModFailedBadAdvertise",
	PortModFailedEPerm:                "PortModFailedEPerm",
	TableModFailedBadTable:            "TableModFailedBadTable",
	TableModFailedBadConfig:           "TableModFailedBadConfig",
	TableModFailedEPerm:               "TableModFailedEPerm",
	QueueOpFailedBadPort:              "QueueOpFailedBadPort",
	QueueOpFailedBadQueue:             "QueueOpFailedBadQueue",
	QueueOpFailedEPerm:                "QueueOpFailedEPerm",
	SwitchConfigFailedBadFlags:        "SwitchConfigFailedBadFlags",
	SwitchConfigFailedBadLen:          "SwitchConfigFailedBadLen",
	SwitchConfigFailedEPerm:           "SwitchConfigFailedEPerm",
	RoleRequestFailedStale:            "RoleRequestFailedStale",
	RoleRequestFailedUnsup:            "RoleRequestFailedUnsup",
	RoleRequestFailedBadRole:          "RoleRequestFailedBadRole",
	MeterModFailedUnknown:             "MeterModFailedUnknown",
	MeterModFailedMeterExists:         "MeterModFailedMeterExists",
	MeterModFailedInvalidMeter:        "MeterModFailedInvalidMeter",
	MeterModFailedUnknownMeter:        "MeterModFailedUnknownMeter",
	MeterModFailedBadCommand:          "MeterModFailedBadCommand",
	MeterModFailedBadFlags:            "MeterModFailedBadFlags",
	MeterModFailedBadRate:             "MeterModFailedBadRate",
	MeterModFailedBadBurst:            "MeterModFailedBadBurst",
	MeterModFailedBadBand:             "MeterModFailedBadBand",
	MeterModFailedBadBandValue:        "MeterModFailedBadBandValue",
	MeterModFailedOutOfMeters:         "MeterModFailedOutOfMeters",
	MeterModFailedOutOfBands:          "MeterModFailedOutOfBands",
	TableFeaturesFailedBadTable:       "TableFeaturesFailedBadTable",
	TableFeaturesFailedBadMetadata:    "TableFeaturesFailedBadMetadata",
	TableFeaturesFailedBadType:        "TableFeaturesFailedBadType",
	TableFeaturesFailedBadLen:         "TableFeaturesFailedBadLen",
	TableFeaturesFailedBadArgument:    "TableFeaturesFailedBadArgument",
	TableFeaturesFailedEPerm:          "TableFeaturesFailedEPerm",
	BundleFailedBadID:                 "BundleFailedBadID",
	BundleFailedExists:                "BundleFailedExists",
	BundleFailedClosed:                "BundleFailedClosed",
	BundleFailedOutOf:                 "BundleFailedOutOf",
	BundleFailedBadType:               "BundleFailedBadType",
	BundleFailedBadFlags:              "BundleFailedBadFlags",
	BundleFailedMsgBadLen:             "BundleFailedMsgBadLen",
	BundleFailedMsgBadXID:             "BundleFailedMsgBadXID",
	BundleFailedMsgUnsup:              "BundleFailedMsgUnsup",
	BundleFailedTooMany:               "BundleFailedTooMany",
	BundleFailedMsgFailed:             "BundleFailedMsgFailed",
}
