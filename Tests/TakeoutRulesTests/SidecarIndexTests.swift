import TakeoutRules
import Testing

/// Names out of real exports, each with the place where it was reported.
private struct NameCase: CustomTestStringConvertible {
    var sidecar: String
    var photo: String
    /// Nil: it belongs to another photo.
    var match: SidecarIndex.Match?
    var source: String

    init(_ sidecar: String, _ photo: String, _ match: SidecarIndex.Match?, _ source: String) {
        (self.sidecar, self.photo, self.match, self.source) = (sidecar, photo, match, source)
    }

    var testDescription: String { "\(photo) (\(source))" }

    static let faces = "😀😃😄😁😆😅😂🤣🥲☺️😊😇🙂🙃😉😌😍🥰😘😗😙😚😋"
    /// 47 units composed, as a Mac stores them.
    static let holiday = """
        E\u{301}te\u{301} a\u{300} la plage avec les enf\
        ants c\u{327}a\u{300} et la\u{300} e\u{301}te\u{301} e\u{301}a
        """
    static let wedding = "Backyard_ceremony_wedding_photography_xxxxxxx_"

    /// Of one sidecar and one photo.
    static let pairs: [NameCase] = [
        // Until 2024: the name and .json.
        NameCase(
            "PXL_20211013_220651983.jpg.json", "PXL_20211013_220651983.jpg", .named, "immich-go matchers"),
        NameCase("PXL_20211013_220651983.jpg.json", "PXL_20211013_220651958.jpg", nil, "immich-go matchers"),
        NameCase(
            "PXL_20231118_035751175.MP.jpg.json", "PXL_20231118_035751175.MP.jpg", .named,
            "immich-go matchers"),
        NameCase(
            "PXL_20210102_221126856.MP~2.jpg.json", "PXL_20210102_221126856.MP~2.jpg", .named, "immich-go#405"
        ),
        NameCase(
            "27_06_12 - 1.mov.json", "27_06_12 - 1.mov", .named, "immich-go, titles with forbidden characters"
        ),
        NameCase(
            "27_06_12 - 2.json", "27_06_12 - 2.jpg", .named, "immich-go, titles with forbidden characters"),
        // The number moves.
        NameCase("DSC_0101.JPG(1).json", "DSC_0101(1).JPG", .named, "immich-go matchers"),
        NameCase("DSC_0102.JPG(2).json", "DSC_0102(1).JPG", nil, "immich-go matchers"),
        NameCase("DSC_0103.JPG(1).json", "DSC_0103.JPG", nil, "immich-go matchers"),
        NameCase("DSC_0104.JPG.json", "DSC_0104(1).JPG", nil, "immich-go matchers"),
        NameCase("IMG_2710.HEIC(1).json", "IMG_2710(1).HEIC", .named, "immich-go matchers"),
        NameCase("IMG_3479.JPG(2).json", "IMG_3479(2).JPG", .named, "immich-go, names with numbers"),
        NameCase("Scan35.jpg.supplemental-metadata(1).json", "Scan35(1).jpg", .named, "immich-go#673"),
        NameCase("CLIP0001.AVI.supplemental-metadata(10).json", "CLIP0001(10).AVI", .named, "immich-go#673"),
        NameCase("IMG_1234.jpg.suppl(1).json", "IMG_1234(1).jpg", .named, "ente#4956"),
        NameCase("skytree (2).jpg.supplemental-metadata.json", "skytree (2).jpg", .named, "ente#12691"),
        NameCase(
            "img(18).jpg.supple(18).json", "img(18).jpg", .named, "Wacheee/GooglePhotosTakeoutHelper#15"),
        NameCase("\(holiday.dropLast()).json", "\(holiday).jpg", .named, "a Mac's disk"),
        NameCase(
            "\(holiday.dropLast(12)).json", "\(holiday.dropLast(12))x.jpg", nil, "a shorter name is whole"),
        // In place of that, and a Live Photo's under its video's name.
        NameCase("LC.MP4.metadata.json", "LC.MP4", .named, "exports with .metadata"),
        NameCase("LD.jpg.metadata.json", "LD.jpg", .named, "exports with .metadata"),
        NameCase("LE.MP4.metadata.json", "LE.jpeg", .motion, "exports with .metadata"),
        // Since 2024: .supplemental-metadata, or as much of it as has room.
        NameCase(
            "20161105_170829.jpg.supplemental-metadata.json", "20161105_170829.jpg", .named, "immich-go#652"),
        NameCase(
            "MVIMG_20191230_232926.jpg.supplemental-metadat.json", "MVIMG_20191230_232926.jpg", .named, "#652"
        ),
        NameCase(
            "MVIMG_20200207_134534~2.jpg.supplemental-metad.json", "MVIMG_20200207_134534~2.jpg", .named,
            "#652"),
        NameCase(
            "Screenshot_20200301-161151.png.supplemental-me.json", "Screenshot_20200301-161151.png", .named,
            "#652"),
        NameCase(
            "Screenshot_20231027_123303_Facebook.jpg.supple.json", "Screenshot_20231027_123303_Facebook.jpg",
            .named,
            "immich-go#652"),
        NameCase(
            "Screenshot_20231027_123303_Facebook.jpg.supple(1).json",
            "Screenshot_20231027_123303_Facebook(1).jpg",
            .named, "immich-go#652"),
        NameCase(
            "a_name_of_44_characters_before_the_dots_.jpg.s.json",
            "a_name_of_44_characters_before_the_dots_.jpg",
            .named, "GooglePhotosTakeoutHelper#449: .s is the shortest"),
        NameCase(
            "a_name_of_45_characters_before_the_dots__.jpg..json",
            "a_name_of_45_characters_before_the_dots__.jpg", .named, "ente#4956: only the point is left"),
        // Cut to 46.
        NameCase(
            "Screenshot_2024-08-31-00-53-48-647_com.snapcha.json",
            "Screenshot_2024-08-31-00-53-48-647_com.snapchat.jpg", .named, "immich-go matchers"),
        NameCase(
            "PXL_20230809_203449253.LONG_EXPOSURE-02.ORIGIN.json",
            "PXL_20230809_203449253.LONG_EXPOSURE-02.ORIGINA.jpg", .named, "immich-go#68"),
        NameCase(
            "PXL_20230814_201154491.LONG_EXPOSURE-01.COVER..json",
            "PXL_20230814_201154491.LONG_EXPOSURE-01.COVER.jpg",
            .named, "immich-go#68"),
        NameCase(
            "05yqt21kruxwwlhhgrwrdyb6chhwszi9bqmzu16w0 2.jp.json",
            "05yqt21kruxwwlhhgrwrdyb6chhwszi9bqmzu16w0 2.jpg",
            .named, "immich-go, truncated names"),
        NameCase("\(faces).json", "\(faces)😛.jpg", .named, "immich-go, truncated names: 46 UTF-16 units"),
        NameCase("\(wedding)(494).json", "\(wedding)m(494).jpg", .named, "immich-go#39"),
        NameCase("\(wedding)(494).json", "\(wedding)m(185).jpg", nil, "immich-go#39"),
        NameCase(
            "13039_327707840323_537645323_9470255_27214_n.j(1).json",
            "13039_327707840323_537645323_9470255_27214_n(1).jpg", .named, "immich-go#613"),
        NameCase(
            "original_1d4caa6f-16c6-4c3d-901b-9387de10e528_.json",
            "original_1d4caa6f-16c6-4c3d-901b-9387de10e528_P.jpg", .named, "immich-go#68"),
        NameCase(
            "original_1d4caa6f-16c6-4c3d-901b-9387de10e528_.json",
            "original_1d4caa6f-16c6-4c3d-901b-9387de10e528_P(1).jpg", .twin,
            "immich-go#68, forgotten duplicates"),
        // Edited photos have none of their own.
        NameCase(
            "PXL_20220405_090123740.PORTRAIT.jpg.json", "PXL_20220405_090123740.PORTRAIT-modifié.jpg",
            .edited,
            "immich-go matchers"),
        NameCase(
            "PXL_20220405_090123740.PORTRAIT.jpg.json", "PXL_20220405_090123741.PORTRAIT-modifié.jpg", nil,
            "immich-go matchers"),
        NameCase("IMAG0061.JPG.supplemental-metadata.json", "IMAG0061-edited.JPG", .edited, "immich-go#698"),
        NameCase(
            "IMG-20230325-WA0122~2.jpg.supplemental-metadat.json", "IMG-20230325-WA0122~2-edited.jpg",
            .edited,
            "immich-go#674"),
        NameCase(
            "2234089303984509579.supplemental-metadata.json", "2234089303984509579-edited.jpg", .edited,
            "immich-go#674"),
        NameCase(
            "Screenshot_20231027_123303_Facebook.jpg.supple.json",
            "Screenshot_20231027_123303_Facebook-edited.jpg",
            .edited, "immich-go#652"),
        NameCase(
            "IMG_1.jpg(1).json", "IMG_1-bearbeitet(1).jpg", .edited, "GooglePhotosTakeoutHelper, extras"),
        NameCase("IMG_1.HEIC.json", "IMG_1-ha editado.jpg", .edited, "GooglePhotosTakeoutHelper, extras"),
        NameCase("IMG_1.jpg.json", "IMG_1-編集済み.jpg", .edited, "GooglePhotosTakeoutHelper, extras"),
        NameCase("IMG_1.jpg.json", "IMG_1-COLLAGE.jpg", .edited, "GooglePhotosTakeoutHelper, extras"),
        NameCase("IMG-2.jpg.json", "IMG-20.jpg", nil, "our own: another photo's number is no word"),
        // The moving part of a still.
        NameCase("IMG_4573.HEIC.json", "IMG_4573.MP4", .motion, "immich-go, Live Photos"),
        NameCase("20231227_152817.jpg.json", "20231227_152817.MP4", .motion, "immich-go, motion test"),
        NameCase("PXL_20221228_185930354.MP.jpg.json", "PXL_20221228_185930354.MP", .motion, "immich-go#68"),
        NameCase(
            "MVIMG_20180418_113218.jpg.json", "MVIMG_20180418_113218", .motion, "immich-go, motion test"),
        NameCase("IMG_1.JPG.json", "IMG_1.MP4", .motion, "google-photos-exif#26"),
        NameCase("PXL_1.MP~2.jpg.json", "PXL_1.MP~2", .motion, "our own: an edited moving picture"),
        NameCase("PXL_1.MP.jpg.json", "PXL_1.MP~2", .motion, "our own: an edited moving picture"),
        NameCase("MVIMG_1.jpg.json", "MVIMG_1.MV", .motion, "our own: a moving picture with an extension"),
        NameCase("PXL_1.MV.jpg.json", "PXL_1.MV", .motion, "our own: a moving picture with an extension"),
        NameCase(
            "image000000.jpg.json", "image000000.gif", nil, "immich-go#390: another still is another photo"),
    ]
}

@Suite("Commands: import --takeout, sidecars of photos") struct SidecarIndexTests {
    @Test(arguments: NameCase.pairs)
    fileprivate func `sidecars and photos belong together as in the exports of others`(
        pair: NameCase
    ) {
        #expect(SidecarIndex([pair.sidecar]).match(pair.photo)?.match == pair.match)
    }

    @Test func `a photo gets its own among many`() {
        let index = SidecarIndex([
            "IMG_1.jpg.json", "IMG_1.jpg(1).json", "IMG_1.jpg(2).json", "IMG_1.HEIC.json", "IMG_10.jpg.json",
        ])
        #expect(index.match("IMG_1.jpg")?.index == 0)
        #expect(index.match("IMG_1(1).jpg")?.index == 1)
        #expect(index.match("IMG_1(2).jpg")?.index == 2)
        #expect(index.match("IMG_1(3).jpg") == nil)
        #expect(index.match("IMG_1.HEIC")?.index == 3)
        #expect(index.match("IMG_1-edited.jpg")?.index == 0)
        #expect(index.match("IMG_1-edited(2).jpg")?.index == 2)
        // Of two stills neither is known to be the video's.
        #expect(index.match("IMG_1.MP4") == nil)
        #expect(index.match("IMG_1(1).MP4")?.index == 1)
    }

    @Test func `any length of a name finds the sidecar that Google's rule makes of it`() {
        for count in 1...60 {
            let stem = String((0..<count).map { Character(Unicode.Scalar(UInt8(97 + $0 % 26))) })
            for number in ["", "(1)", "(12)"] {
                let sidecar = (stem + ".jpg.supplemental-metadata").prefix(46) + "\(number).json"
                let old = (stem + ".jpg").prefix(46) + "\(number).json"
                let photo = stem.prefix(47) + "\(number).jpg"
                #expect(SidecarIndex([String(sidecar)]).match(String(photo))?.match == .named, "\(sidecar)")
                #expect(SidecarIndex([String(old)]).match(String(photo))?.match == .named, "\(old)")
            }
        }
    }

    /// Letters with accents are one unit once composed, small pictures two, as Google counts.
    @Test func `a decomposed name is counted as if composed`() {
        for letter in ["e\u{301}", "\u{1112}\u{1161}\u{11AB}", "\u{304B}\u{3099}"] {
            for pictures in 0...12 {
                let stem =
                    String(repeating: "\u{1F600}", count: pictures) + String(repeating: letter, count: 60)
                var cut = ""
                var units = 0
                for character in stem {
                    let width = character == "\u{1F600}" ? 2 : 1
                    if units + width > 46 { break }
                    cut.append(character)
                    units += width
                }
                let photo = stem.prefix(47 - pictures) + ".jpg"
                #expect(SidecarIndex([cut + ".json"]).match(String(photo))?.match == .named, "\(cut)")
            }
        }
    }

    @Test func `names of edited photos are known in many languages, also cut`() {
        for name in ["a-edited.jpg", "a-BEARBEITET.jpg", "a-modifié(1).png", "a-ha editado.jpg"] {
            #expect(EditedName.isVersion(name))
        }
        let long = String(repeating: "123456789", count: 4) + "_DSCN0095"
        #expect(EditedName.isVersion(long + "-ha editad.jpg"), "GooglePhotosTakeoutHelper_Neo#29")
        for name in ["a-EFFECTS.jpg", "a-b.jpg", "edited.jpg", "-edited.jpg", "a-ha edit.jpg"] {
            #expect(!EditedName.isVersion(name))
        }
        #expect(EditedName.isCreation("a-EFFECTS.jpg") && !EditedName.isCreation("a-edited.jpg"))
    }

    @Test func `names of an iPhone's edited photos and adjustments lead to the original`() {
        #expect(EditedName.appleOriginal("IMG_E0001.JPG") == "IMG_0001")
        #expect(EditedName.appleOriginal("IMG_E0001(1).MOV") == "IMG_0001(1)")
        for name in ["IMG_0001.JPG", "IMG_EAST.JPG", "IMG_E1.JPG", "IMG_E0001.txt"] {
            #expect(EditedName.appleOriginal(name) == nil)
        }
        #expect(EditedName.adjusted("IMG_0001.AAE") == "IMG_0001")
        #expect(EditedName.adjusted("IMG_O0001.aae") == "IMG_0001")
        #expect(EditedName.adjusted("IMG_0001.JPG") == nil)
    }

    @Test func `a cut name is whole again by the title`() {
        let cut = "Screenshot_2024-08-31-00-53-48-647_com.snapchat"
        #expect(uncutName(cut + ".jpg", title: cut + ".android.jpg") == cut + ".android.jpg")
        #expect(uncutName(cut + "(1).jpg", title: cut + ".android.jpg") == cut + ".android.jpg")
        #expect(uncutName(cut + ".jpg", title: cut + ".jpg") == nil)
        #expect(uncutName(cut + ".jpg", title: cut + ".android.png") == nil)
        #expect(uncutName(cut + ".jpg", title: cut + "/.android.jpg") == nil)
        #expect(uncutName("IMG_1.jpg", title: "IMG_12.jpg") == nil)
        // A Mac stores more units than the title has.
        let title = String(repeating: "\u{E9}t\u{E9} \u{E0} ", count: 9) + ".jpg"
        let stored = String(repeating: "e\u{301}te\u{301} a\u{300} ", count: 8) + ".jpg"
        #expect(stored.utf16.count > title.utf16.count)
        #expect(uncutName(stored, title: title) == title)
        let (edited, original) = (
            "Te\u{302}\u{301}t-\u{111}a\u{303} chi\u{309}nh su\u{31B}\u{309}a.jpg", "Te\u{302}\u{301}t.jpg"
        )
        #expect(EditedName.original(edited) { $0 == original } == original)
        #expect(EditedName.isVersion(edited))
    }
}
