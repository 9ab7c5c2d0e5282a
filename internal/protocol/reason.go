package protocol

// The reasons that the library itself gives in conditions. Whatever else stands there as
// the reason of a Stalled condition came from the External, a rejection, or from its
// Validator, which the message tells.
const (
	ReasonPaused            = "Paused"
	ReasonUnreadable        = "Unreadable"
	ReasonObserveOnly       = "ObserveOnly"
	ReasonClaimStripped     = "ClaimStripped"
	ReasonPending           = "Pending"
	ReasonReplacing         = "Replacing"
	ReasonDeleting          = "Deleting"
	ReasonSettling          = "Settling"
	ReasonVerifyingAbsence  = "VerifyingAbsence"
	ReasonInvalidAnnotation = "InvalidAnnotation"
	ReasonInvalidClaim      = "InvalidClaim"
	ReasonNewerClaim        = "NewerClaim"
	ReasonForeignClaim      = "ForeignClaim"
	ReasonClusterIDChanged  = "ClusterIDChanged"
	ReasonTwoControllers    = "TwoControllers"
	ReasonClaimLost         = "ClaimLost"
	ReasonCannotAdopt       = "CannotAdopt"
	ReasonTakenOver         = "TakenOver"
	ReasonAmbiguous         = "Ambiguous"
	ReasonOutcomeUnknown    = "OutcomeUnknown"
	ReasonScopeChanged      = "ScopeChanged"
	ReasonLost              = "Lost"
	ReasonEnded             = "Ended"
	ReasonPerpetualDiff     = "PerpetualDiff"
	ReasonDiffers           = "Differs"
	ReasonEdited            = "EditOutsideStatus"
	ReasonNoID              = "NoID"
	ReasonInvalid           = "Invalid"
)

var ownReasons = map[string]bool{
	ReasonPaused: true, ReasonUnreadable: true, ReasonObserveOnly: true, ReasonClaimStripped: true, ReasonPending: true, ReasonReplacing: true, ReasonDeleting: true, ReasonSettling: true,
	ReasonVerifyingAbsence: true, ReasonInvalidAnnotation: true, ReasonInvalidClaim: true, ReasonNewerClaim: true,
	ReasonForeignClaim: true, ReasonClusterIDChanged: true, ReasonTwoControllers: true, ReasonClaimLost: true,
	ReasonCannotAdopt: true, ReasonTakenOver: true, ReasonAmbiguous: true, ReasonOutcomeUnknown: true,
	ReasonScopeChanged: true, ReasonLost: true, ReasonEnded: true, ReasonPerpetualDiff: true, ReasonDiffers: true,
	ReasonEdited: true, ReasonNoID: true, ReasonInvalid: true,
}

// OwnReason tells whether the protocol gives this reason itself.
func OwnReason(reason string) bool { return ownReasons[reason] }
