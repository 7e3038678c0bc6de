package decide

import "github.com/quaymaster/quaymaster/verify"

// sentences are the messages for verify's codes.
var sentences = map[verify.Code]string{
	verify.WrongKey:           "signed with another key",
	verify.WrongIdentity:      "signed by another identity",
	verify.WrongExtension:     "signed from another source",
	verify.WrongAnnotation:    "the signature lacks an annotation",
	verify.WrongDigest:        "the signature is of another image",
	verify.WrongPredicate:     "the statement is of another type",
	verify.WrongFormat:        "the evidence is in a format that this authority cannot be proved in",
	verify.BadSignature:       "the signature does not match the signed content",
	verify.Malformed:          "the evidence cannot be read",
	verify.UntrustedChain:     "the signing certificate leads to no trusted root",
	verify.ExpiredCertificate: "the signing certificate was not valid when it was used",
	verify.NoLogEntry:         "no transparency log entry travels with the signature",
	verify.BadLogEntry:        "the transparency log entry is not of a trusted log, or not of this signature",
	verify.NoSCT:              "the signing certificate has no certificate transparency timestamp",
	verify.BadSCT:             "the certificate transparency timestamp is not of a trusted log",
	verify.NoTimestamp:        "the signature has no trusted time",
	verify.BadTimestamp:       "the timestamp is not of a trusted authority, or not of this signature",
	verify.OutsideValidity:    "signed outside the time in which the authority is valid",
	verify.Expired:            "the signature has expired",
	verify.TooOld:             "signed too long ago",
	verify.Revoked:            "a certificate of the signer was revoked",
}
