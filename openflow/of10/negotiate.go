package of10

import (
	"math/bits"

	"sublet/openflow/of13"
)

// Versions are those of which there are packages, as a hello tells them.
const Versions uint32 = 1<<Version | 1<<of13.Version

// Negotiate gives the version that is spoken with who sent a hello: the highest
// that both name, or the lower of the two headers' if one names none.
func Negotiate(header uint8, bitmap uint32) (version uint8, ok bool) {
	if bitmap != 0 {
		common := bitmap & Versions
		return uint8(bits.Len32(common) - 1), common != 0
	}
	version = min(header, of13.Version)
	return version, Versions&(1<<version) != 0
}

// ReadHello reads the hello of any version, of which those below 1.3 have nothing
// that is to be read.
func ReadHello(raw []byte, d *of13.Decoder) (version uint8, ok bool, err error) {
	h := of13.ReadHeader(raw)
	if h.Type != of13.TypeHello {
		return 0, false, of13.BadRequestBadType
	}
	if h.Version < of13.Version {
		version, ok = Negotiate(h.Version, 0)
		return version, ok, nil
	}
	_, m, err := d.Decode(raw)
	if err != nil {
		return 0, false, err
	}
	version, ok = Negotiate(h.Version, m.(*of13.Hello).Bitmap)
	return version, ok, nil
}
