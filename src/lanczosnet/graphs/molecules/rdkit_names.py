"""RDKit's descriptors that models may use, by RDKit's names.

The list is fixed: what a model was trained on must be the same in another version of RDKit. Left out are `Ipc`, whose
values exceed any scale, and newer ones, which older versions may lack.
"""

_FRAGMENTS = """
Al_COO Al_OH Al_OH_noTert ArN Ar_COO Ar_N Ar_NH Ar_OH COO COO2 C_O C_O_noCOO C_S HOCCN Imine NH0 NH1 NH2 N_O
Ndealkylation1 Ndealkylation2 Nhpyrrole SH aldehyde alkyl_carbamate alkyl_halide allylic_oxid amide amidine
aniline aryl_methyl azide azo barbitur benzene benzodiazepine bicyclic diazo dihydropyridine epoxide ester ether
furan guanido halogen hdrzine hdrzone imidazole imide isocyan isothiocyan ketone ketone_Topliss lactam lactone
methoxy morpholine nitrile nitro nitro_arom nitro_arom_nonortho nitroso oxazole oxime para_hydroxylation phenol
phenol_noOrthoHbond phos_acid phos_ester piperdine piperzine priamide prisulfonamd pyridine quatN sulfide
sulfonamd sulfone term_acetylene tetrazole thiazole thiocyan thiophene unbrch_alkane urea
"""

_OTHERS = """
MaxAbsEStateIndex MaxEStateIndex MinAbsEStateIndex MinEStateIndex qed MolWt HeavyAtomMolWt ExactMolWt
NumValenceElectrons NumRadicalElectrons MaxPartialCharge MinPartialCharge MaxAbsPartialCharge
MinAbsPartialCharge FpDensityMorgan1 FpDensityMorgan2 FpDensityMorgan3 BCUT2D_MWHI BCUT2D_MWLOW BCUT2D_CHGHI
BCUT2D_CHGLO BCUT2D_LOGPHI BCUT2D_LOGPLOW BCUT2D_MRHI BCUT2D_MRLOW AvgIpc BalabanJ BertzCT Chi0 Chi0n Chi0v Chi1
Chi1n Chi1v Chi2n Chi2v Chi3n Chi3v Chi4n Chi4v HallKierAlpha Kappa1 Kappa2 Kappa3 LabuteASA PEOE_VSA1
PEOE_VSA10 PEOE_VSA11 PEOE_VSA12 PEOE_VSA13 PEOE_VSA14 PEOE_VSA2 PEOE_VSA3 PEOE_VSA4 PEOE_VSA5 PEOE_VSA6
PEOE_VSA7 PEOE_VSA8 PEOE_VSA9 SMR_VSA1 SMR_VSA10 SMR_VSA2 SMR_VSA3 SMR_VSA4 SMR_VSA5 SMR_VSA6 SMR_VSA7 SMR_VSA8
SMR_VSA9 SlogP_VSA1 SlogP_VSA10 SlogP_VSA11 SlogP_VSA12 SlogP_VSA2 SlogP_VSA3 SlogP_VSA4 SlogP_VSA5 SlogP_VSA6
SlogP_VSA7 SlogP_VSA8 SlogP_VSA9 TPSA EState_VSA1 EState_VSA10 EState_VSA11 EState_VSA2 EState_VSA3 EState_VSA4
EState_VSA5 EState_VSA6 EState_VSA7 EState_VSA8 EState_VSA9 VSA_EState1 VSA_EState10 VSA_EState2 VSA_EState3
VSA_EState4 VSA_EState5 VSA_EState6 VSA_EState7 VSA_EState8 VSA_EState9 FractionCSP3 HeavyAtomCount NHOHCount
NOCount NumAliphaticCarbocycles NumAliphaticHeterocycles NumAliphaticRings NumAromaticCarbocycles
NumAromaticHeterocycles NumAromaticRings NumHAcceptors NumHDonors NumHeteroatoms NumRotatableBonds
NumSaturatedCarbocycles NumSaturatedHeterocycles NumSaturatedRings RingCount MolLogP MolMR
"""

RDKIT_NAMES = (*_OTHERS.split(), *(f"fr_{name}" for name in _FRAGMENTS.split()))

# Solubility in fat, size, polarity, rings: names whose meaning and order must never change, as models rely on them.
PROPERTY_NAMES = (
    *("MolLogP", "MolMR", "TPSA", "LabuteASA", "MolWt", "NumHDonors", "NumHAcceptors", "NumRotatableBonds"),
    *("RingCount", "NumAromaticRings", "FractionCSP3", "HeavyAtomCount"),
)
