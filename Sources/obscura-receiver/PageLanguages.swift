/// The texts of the page by language, as a constant of its script. `$1` and so on are replaced.
let pageLanguages = #"""
    const texts = {
    en: {
      name: "English",
      title: "Send photos",
      language: "Language",
      wordsTitle: "Is this the right computer?",
      wordsText:
        "Compare these words with those on the computer's screen. If they differ, stop: another machine has " +
        "put itself in between. It could also copy the words. To be certain, open the certificate in your " +
        "browser's address bar and compare its SHA-256 with the computer's.",
      codeTitle: "Code",
      codeText: "Scan the code on the computer's screen, or type what stands behind the # there.",
      codeLabel: "Code",
      codeButton: "Connect",
      codeWrong: "This code is not valid, or was used before. Type n on the computer for another one.",
      target: "Into the album “$1”.",
      photos: "Photos",
      photosText:
        "From the photo library. The phone may change them: iPhones convert HEIC to JPEG and leave out the " +
        "videos of Live Photos, Android removes places.",
      originals: "Originals",
      originalsText:
        "Through Files, unchanged. On an iPhone first save the photos to Files; on Android choose the " +
        "folder DCIM.",
      resultsTitle: "What came",
      again: "Send these all the same",
      recentTitle: "On the computer now",
      looking: "being looked at",
      waiting: "waiting",
      sending: "being sent",
      retrying: "interrupted: it goes on by itself",
      done: "arrived, byte for byte",
      known: "there already, not sent",
      failed: "not sent: choose it again, and it goes on where it ended",
      noRoom: "no room on the computer",
      lostHeic: "It is a JPEG although its name says HEIC: the phone has converted it.",
      lostPlace: "It has no place: the phone may have removed it.",
      lostLive: "A Live Photo without its video.",
      lostVideo: "The video seems to have been encoded again.",
      doneCount: "Arrived: $1",
      knownCount: "There already: $1",
      failedCount: "Not sent: $1",
      noRoomCount: "No room on the computer: $1",
      lostHeicCount: "Converted from HEIC: $1",
      lostPlaceCount: "Without a place: $1",
      lostLiveCount: "Live Photos without their video: $1",
      lostVideoCount: "Videos encoded again: $1",
      progress: "$1 of $2 files, $3 of $4",
      finished: "All done.",
      seconds: "$1 s left",
      minutes: "$1 min left",
    },
    de: {
      name: "Deutsch",
      title: "Fotos senden",
      language: "Sprache",
      wordsTitle: "Ist das der richtige Computer?",
      wordsText:
        "Vergleiche diese Wörter mit denen auf dem Bildschirm des Computers. Sind es andere, hör auf: Ein " +
        "fremdes Gerät hat sich dazwischengeschaltet. Es könnte auch die Wörter kopieren. Sicher bist " +
        "du, wenn du das Zertifikat in der Adresszeile des Browsers öffnest und sein SHA-256 mit dem des " +
        "Computers vergleichst.",
      codeTitle: "Code",
      codeText: "Scanne den Code auf dem Bildschirm des Computers, oder tippe ein, was dort hinter dem # steht.",
      codeLabel: "Code",
      codeButton: "Verbinden",
      codeWrong: "Dieser Code gilt nicht oder wurde schon benutzt. Tippe am Computer n für einen neuen.",
      target: "In das Album „$1“.",
      photos: "Fotos",
      photosText:
        "Aus der Fotomediathek. Das Telefon verändert sie vielleicht: iPhones wandeln HEIC in JPEG um und " +
        "lassen die Videos von Live Photos weg, Android entfernt Orte.",
      originals: "Originale",
      originalsText:
        "Über „Dateien“, unverändert. Auf dem iPhone die Fotos vorher in „Dateien“ sichern, auf " +
        "Android den Ordner DCIM wählen.",
      resultsTitle: "Was angekommen ist",
      again: "Trotzdem senden",
      recentTitle: "Jetzt auf dem Computer",
      looking: "wird angesehen",
      waiting: "wartet",
      sending: "wird gesendet",
      retrying: "unterbrochen: geht von selbst weiter",
      done: "angekommen, Byte für Byte",
      known: "schon da, nicht gesendet",
      failed: "nicht gesendet: wähle es noch einmal, dann geht es dort weiter",
      noRoom: "kein Platz auf dem Computer",
      lostHeic: "Ein JPEG, obwohl der Name HEIC sagt: Das Telefon hat es umgewandelt.",
      lostPlace: "Ohne Ort: Das Telefon hat ihn vielleicht entfernt.",
      lostLive: "Ein Live Photo ohne sein Video.",
      lostVideo: "Das Video wurde anscheinend neu kodiert.",
      doneCount: "Angekommen: $1",
      knownCount: "Schon da: $1",
      failedCount: "Nicht gesendet: $1",
      noRoomCount: "Kein Platz auf dem Computer: $1",
      lostHeicCount: "Aus HEIC umgewandelt: $1",
      lostPlaceCount: "Ohne Ort: $1",
      lostLiveCount: "Live Photos ohne Video: $1",
      lostVideoCount: "Neu kodierte Videos: $1",
      progress: "$1 von $2 Dateien, $3 von $4",
      finished: "Alles fertig.",
      seconds: "noch $1 s",
      minutes: "noch $1 min",
    },
    fr: {
      name: "Français",
      title: "Envoyer des photos",
      language: "Langue",
      wordsTitle: "Est-ce le bon ordinateur ?",
      wordsText:
        "Comparez ces mots avec ceux affichés sur l’ordinateur. S’ils diffèrent, arrêtez : un autre " +
        "appareil s’est placé entre les deux. Il pourrait aussi copier les mots. Pour être sûr, ouvrez " +
        "le certificat depuis la barre d’adresse du navigateur et comparez son SHA-256 avec celui de " +
        "l’ordinateur.",
      codeTitle: "Code",
      codeText: "Scannez le code affiché sur l’ordinateur, ou saisissez ce qui y suit le #.",
      codeLabel: "Code",
      codeButton: "Se connecter",
      codeWrong:
        "Ce code n’est pas valable ou a déjà servi. Tapez n sur l’ordinateur pour en obtenir un " +
        "autre.",
      target: "Dans l’album « $1 ».",
      photos: "Photos",
      photosText:
        "Depuis la photothèque. Le téléphone peut les modifier : l’iPhone convertit le HEIC en JPEG et " +
        "omet les vidéos des Live Photos, Android retire les lieux.",
      originals: "Originaux",
      originalsText:
        "Par Fichiers, sans changement. Sur iPhone, enregistrez d’abord les photos dans Fichiers ; sur " +
        "Android, choisissez le dossier DCIM.",
      resultsTitle: "Ce qui est arrivé",
      again: "Envoyer quand même",
      recentTitle: "Maintenant sur l’ordinateur",
      looking: "en cours d’examen",
      waiting: "en attente",
      sending: "en cours d’envoi",
      retrying: "interrompu : reprend de lui-même",
      done: "arrivé, octet pour octet",
      known: "déjà là, non envoyé",
      failed: "non envoyé : choisissez-le de nouveau, l’envoi reprendra où il s’est arrêté",
      noRoom: "plus de place sur l’ordinateur",
      lostHeic: "C’est un JPEG bien que son nom dise HEIC : le téléphone l’a converti.",
      lostPlace: "Sans lieu : le téléphone l’a peut-être retiré.",
      lostLive: "Une Live Photo sans sa vidéo.",
      lostVideo: "La vidéo semble avoir été réencodée.",
      doneCount: "Arrivés : $1",
      knownCount: "Déjà là : $1",
      failedCount: "Non envoyés : $1",
      noRoomCount: "Plus de place sur l’ordinateur : $1",
      lostHeicCount: "Convertis depuis HEIC : $1",
      lostPlaceCount: "Sans lieu : $1",
      lostLiveCount: "Live Photos sans vidéo : $1",
      lostVideoCount: "Vidéos réencodées : $1",
      progress: "$1 fichiers sur $2, $3 sur $4",
      finished: "Tout est terminé.",
      seconds: "encore $1 s",
      minutes: "encore $1 min",
    },
    es: {
      name: "Español",
      title: "Enviar fotos",
      language: "Idioma",
      wordsTitle: "¿Es este el ordenador correcto?",
      wordsText:
        "Compara estas palabras con las de la pantalla del ordenador. Si son otras, no sigas: otro aparato " +
        "se ha puesto en medio. También podría copiar las palabras. Para estar seguro, abre el " +
        "certificado desde la barra de direcciones del navegador y compara su SHA-256 con el del ordenador.",
      codeTitle: "Código",
      codeText: "Escanea el código de la pantalla del ordenador o escribe lo que allí sigue al #.",
      codeLabel: "Código",
      codeButton: "Conectar",
      codeWrong: "Este código no es válido o ya se ha usado. Escribe n en el ordenador para obtener otro.",
      target: "En el álbum «$1».",
      photos: "Fotos",
      photosText:
        "De la fototeca. El teléfono puede cambiarlas: el iPhone convierte HEIC en JPEG y omite los " +
        "vídeos de las Live Photos, Android quita los lugares.",
      originals: "Originales",
      originalsText:
        "Por Archivos, sin cambios. En un iPhone guarda antes las fotos en Archivos; en Android elige la " +
        "carpeta DCIM.",
      resultsTitle: "Lo que ha llegado",
      again: "Enviar de todos modos",
      recentTitle: "Ahora en el ordenador",
      looking: "se está examinando",
      waiting: "en espera",
      sending: "se está enviando",
      retrying: "interrumpido: sigue por sí solo",
      done: "ha llegado, byte a byte",
      known: "ya estaba, no se envía",
      failed: "no enviado: elígelo otra vez y seguirá donde quedó",
      noRoom: "no hay sitio en el ordenador",
      lostHeic: "Es un JPEG aunque su nombre dice HEIC: el teléfono lo ha convertido.",
      lostPlace: "No tiene lugar: quizá lo ha quitado el teléfono.",
      lostLive: "Una Live Photo sin su vídeo.",
      lostVideo: "Parece que el vídeo se ha vuelto a codificar.",
      doneCount: "Han llegado: $1",
      knownCount: "Ya estaban: $1",
      failedCount: "No enviados: $1",
      noRoomCount: "No hay sitio en el ordenador: $1",
      lostHeicCount: "Convertidos de HEIC: $1",
      lostPlaceCount: "Sin lugar: $1",
      lostLiveCount: "Live Photos sin vídeo: $1",
      lostVideoCount: "Vídeos codificados otra vez: $1",
      progress: "$1 de $2 archivos, $3 de $4",
      finished: "Todo listo.",
      seconds: "faltan $1 s",
      minutes: "faltan $1 min",
    },
    ar: {
      name: "العربية",
      title: "إرسال الصور",
      language: "اللغة",
      wordsTitle: "هل هذا هو الحاسوب الصحيح؟",
      wordsText:
        "قارن هذه الكلمات بالكلمات الظاهرة على شاشة الحاسوب. " +
        "إن اختلفت فتوقّف: لقد دخل جهاز آخر بينكما. وقد ينسخ " +
        "الكلمات أيضًا. للتأكد افتح الشهادة من شريط العنوان في " +
        "المتصفح وقارن قيمة SHA-256 بالقيمة الظاهرة على الحاسوب.",
      codeTitle: "الرمز",
      codeText:
        "امسح الرمز الظاهر على شاشة الحاسوب، أو اكتب ما يلي " +
        "العلامة # هناك.",
      codeLabel: "الرمز",
      codeButton: "اتصال",
      codeWrong:
        "هذا الرمز غير صالح أو استُخدم من قبل. اكتب n على " +
        "الحاسوب للحصول على رمز آخر.",
      target: "إلى الألبوم «$1».",
      photos: "الصور",
      photosText:
        "من مكتبة الصور. قد يغيّرها الهاتف: آيفون يحوّل HEIC إلى " +
        "JPEG ويترك مقاطع الصور الحية، وأندرويد يحذف الأماكن.",
      originals: "الملفات الأصلية",
      originalsText:
        "عبر تطبيق الملفات من دون تغيير. في آيفون احفظ الصور " +
        "أولًا في «الملفات»، وفي أندرويد اختر المجلد DCIM.",
      resultsTitle: "ما وصل",
      again: "أرسلها على أي حال",
      recentTitle: "على الحاسوب الآن",
      looking: "قيد الفحص",
      waiting: "في الانتظار",
      sending: "قيد الإرسال",
      retrying: "انقطع الإرسال وسيُستأنف تلقائيًا",
      done: "وصل كاملًا كما هو",
      known: "موجود من قبل، لم يُرسَل",
      failed: "لم يُرسَل: اختره مرة أخرى فيُستأنف من حيث توقّف",
      noRoom: "لا توجد مساحة على الحاسوب",
      lostHeic: "هذا ملف JPEG مع أن اسمه HEIC: لقد حوّله الهاتف.",
      lostPlace: "بلا مكان: ربما حذفه الهاتف.",
      lostLive: "صورة حية بلا مقطعها.",
      lostVideo: "يبدو أن المقطع أُعيد ترميزه.",
      doneCount: "وصل: $1",
      knownCount: "موجود من قبل: $1",
      failedCount: "لم يُرسَل: $1",
      noRoomCount: "لا مساحة على الحاسوب: $1",
      lostHeicCount: "محوّل من HEIC: $1",
      lostPlaceCount: "بلا مكان: $1",
      lostLiveCount: "صور حية بلا مقاطع: $1",
      lostVideoCount: "مقاطع أُعيد ترميزها: $1",
      progress: "$1 من $2 ملفات، $3 من $4",
      finished: "اكتمل كل شيء.",
      seconds: "بقي $1 ث",
      minutes: "بقي $1 د",
    },
    };

    """#
