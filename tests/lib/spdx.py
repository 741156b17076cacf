"""What SPDX 2.3 asks of a document in JSON, so far as podqos's packages use it: spdx.github.io/spdx-spec/v2.3."""

import re

REFERENCE = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")  # 6.3, 7.2
CREATOR = re.compile(r"(Person|Organization|Tool): \S.*")  # 6.8
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")  # 6.9
SUPPLIER = re.compile(r"NOASSERTION|(Person|Organization): \S.*")  # 7.5
# Annex A, those that podqos's packages have.
LICENCES = {"AFL-2.1", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "GPL-2.0-or-later", "GPL-3.0-or-later",
            "LGPL-2.1-only", "LGPL-2.1-or-later", "MIT", "Zlib"}
EXCEPTIONS = {"GCC-exception-3.1"}
PURPOSES = {"APPLICATION", "FRAMEWORK", "LIBRARY", "CONTAINER", "OPERATING-SYSTEM", "DEVICE", "FIRMWARE", "SOURCE",
            "ARCHIVE", "FILE", "INSTALL", "OTHER"}  # 7.24
RELATIONSHIPS = {"DESCRIBES", "CONTAINS", "STATIC_LINK"}  # 11.1
PURL = re.compile(r"pkg:[a-z]+/([a-z0-9.+-]+/)?[A-Za-z0-9.+_-]+@[A-Za-z0-9.+~:%_-]+(\?[a-z]+=[^&]+(&[a-z]+=[^&]+)*)?")


def is_licence(expression):
    """Annex D: names, with an exception perhaps, joined by AND and OR."""
    if expression == "NOASSERTION":
        return True
    return all(name in LICENCES and exception in EXCEPTIONS | {""} for name, _, exception in
               (term.partition(" WITH ") for term in re.split(r" AND | OR ", expression)))


def _package_problems(package):
    """7: what is wrong with one package."""
    wanted = {
        "name": bool(package.get("name")),
        "SPDXID": bool(REFERENCE.fullmatch(package.get("SPDXID", ""))),
        "downloadLocation": package.get("downloadLocation") == "NOASSERTION",
        "filesAnalyzed": package.get("filesAnalyzed") is False and "packageVerificationCode" not in package,
        "supplier": bool(SUPPLIER.fullmatch(package.get("supplier", "NOASSERTION"))),
        "primaryPackagePurpose": package.get("primaryPackagePurpose") in PURPOSES,
        "checksums": all(sum_["algorithm"] == "SHA256" and re.fullmatch("[0-9a-f]{64}", sum_["checksumValue"])
                         for sum_ in package.get("checksums", [])),
        "externalRefs": all(each["referenceCategory"] == "PACKAGE-MANAGER" and each["referenceType"] == "purl"
                            and PURL.fullmatch(each["referenceLocator"]) for each in package.get("externalRefs", [])),
    }
    for field in ("licenseConcluded", "licenseDeclared"):
        wanted[field] = is_licence(package.get(field, "NOASSERTION"))
    return [f"{package.get('SPDXID')}: {field}: {package.get(field)}" for field, good in wanted.items() if not good]


def problems(document):
    """All that is wrong with it, as text."""
    information = document["creationInfo"]
    wanted = {
        "spdxVersion": document["spdxVersion"] == "SPDX-2.3",
        "dataLicense": document["dataLicense"] == "CC0-1.0",
        "SPDXID": document["SPDXID"] == "SPDXRef-DOCUMENT",
        "name": bool(document["name"]),
        # 6.5: absolute, and no '#'.
        "documentNamespace": bool(re.fullmatch(r"https://[^#\s]+", document["documentNamespace"])),
        "creationInfo": bool(TIME.fullmatch(information["created"]) and information["creators"]
                             and all(map(CREATOR.fullmatch, information["creators"]))),
    }
    found = [f"{field}: {document[field]}" for field, good in wanted.items() if not good]
    ids = [document["SPDXID"], *(package["SPDXID"] for package in document["packages"])]
    if len(set(ids)) != len(ids):
        found.append(f"identifiers that are not unique: {sorted(ids)}")
    for package in document["packages"]:
        found += _package_problems(package)
    for each in document["relationships"]:
        ends = {each["spdxElementId"], each["relatedSpdxElement"]}
        if not ends <= set(ids) or each["relationshipType"] not in RELATIONSHIPS:
            found.append(f"relationship {each}")
    if not any(each["relationshipType"] == "DESCRIBES" for each in document["relationships"]):
        found.append("it describes nothing")
    return found


def related(document, element, kind):
    """{name: version or None} of what the element of this identifier has this relationship to."""
    packages = {package["SPDXID"]: package for package in document["packages"]}
    others = [packages[each["relatedSpdxElement"]] for each in document["relationships"]
              if (each["spdxElementId"], each["relationshipType"]) == (f"SPDXRef-{element}", kind)]
    return {other["name"]: other.get("versionInfo") for other in others}
