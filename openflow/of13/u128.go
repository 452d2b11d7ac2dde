package of13

import "math/bits"

// U128 is a number of up to 128 bits: the value of any field.
type U128 struct{ Hi, Lo uint64 }

// ReadU128 reads up to 16 bytes, the most significant first.
func ReadU128(b []byte) (v U128) {
	for _, x := range b {
		v.Hi = v.Hi<<8 | v.Lo>>56
		v.Lo = v.Lo<<8 | uint64(x)
	}
	return v
}

// Put writes the low bytes of v, as many as b has.
func (v U128) Put(b []byte) {
	rest := v
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte(rest.Lo)
		rest = U128{rest.Hi >> 8, rest.Lo>>8 | rest.Hi<<56}
	}
}

// Ones is a number of n one bits, 0 to 128.
func Ones(n int) U128 {
	if n > 64 {
		return U128{1<<(n-64) - 1, ^uint64(0)}
	}
	if n == 64 {
		return U128{0, ^uint64(0)}
	}
	return U128{0, 1<<n - 1}
}

// And is the bits of both.
func (v U128) And(w U128) U128 { return U128{v.Hi & w.Hi, v.Lo & w.Lo} }

// Or is the bits of either.
func (v U128) Or(w U128) U128 { return U128{v.Hi | w.Hi, v.Lo | w.Lo} }

// AndNot is the bits of v that w has not.
func (v U128) AndNot(w U128) U128 { return U128{v.Hi &^ w.Hi, v.Lo &^ w.Lo} }

// Zero says whether no bit is set.
func (v U128) Zero() bool { return v.Hi|v.Lo == 0 }

// Len is the number of bits up to the highest one that is set.
func (v U128) Len() int {
	if v.Hi != 0 {
		return 64 + bits.Len64(v.Hi)
	}
	return bits.Len64(v.Lo)
}
